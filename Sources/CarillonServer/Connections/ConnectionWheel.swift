import CarillonCore
import Metrics
import NIOCore

/// A connection that has a time limit.
protocol WheelMember: AnyObject {
    /// The position of the member in the wheel. The member stores it so that it can be removed in one step.
    var place: ConnectionWheel.Place? { get set }
    /// Called when the member's time is over. Returns the number of seconds until the next call; nil removes the member.
    func wheelTurned(at second: Int) -> Int?
}

/// The clock of all connections of one event loop: one timer, and a slot for each second.
///
/// Activity of a connection does not move it in the wheel. When its slot is reached, the connection returns its next time. No
/// member is called early: an event within a second counts as an event at the end of the second. A member is therefore called
/// less than a second after its time. A time longer than the wheel takes several rounds.
final class ConnectionWheel {
    struct Place {
        /// The second in which the member is called.
        var due: Int32
        var index: Int32
    }

    /// A year. With this limit, `Int32` suffices for decades of uptime.
    private static let longestSeconds = 31_536_000

    private let delay = ServerMetric.eventLoopDelay.timer()
    private var lastTurn = NIODeadline.now()
    private var slots: [[any WheelMember]]
    private var turns = 0
    /// The second that is used as the time of present events: the end of the current second.
    var now: Int { turns + 1 }

    init(slots: Int) { self.slots = Array(repeating: [], count: max(2, slots)) }

    func start(on eventLoop: any EventLoop) {
        let wheel = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            wheel.value.noteDelay()
            wheel.value.turn()
        }
    }

    /// Calls the member after the given number of seconds, at least one.
    func insert(_ member: any WheelMember, afterSeconds seconds: Int) { insert(member, seconds, after: now) }

    private func insert(_ member: any WheelMember, _ seconds: Int, after second: Int) {
        insert(member, at: second + min(max(1, seconds), Self.longestSeconds))
    }

    private func insert(_ member: any WheelMember, at second: Int) {
        let slot = second % slots.count
        member.place = Place(due: Int32(second), index: Int32(slots[slot].count))
        slots[slot].append(member)
    }

    func remove(_ member: any WheelMember) {
        guard let place = member.place else { return }
        member.place = nil
        let slot = Int(place.due) % slots.count
        let last = slots[slot].removeLast()
        guard last !== member else { return }
        slots[slot][Int(place.index)] = last
        last.place?.index = place.index
    }

    private func noteDelay() {
        let now = NIODeadline.now()
        delay.recordNanoseconds(max(0, (now - lastTurn - .seconds(1)).nanoseconds))
        lastTurn = now
    }

    func turn() {
        turns += 1
        let slot = turns % slots.count
        let members = slots[slot]
        slots[slot] = []
        var due: [any WheelMember] = []
        for member in members {
            if let place = member.place, place.due > turns {
                insert(member, at: Int(place.due))
            } else {
                member.place = nil
                due.append(member)
            }
        }
        for member in due {
            if let seconds = member.wheelTurned(at: turns) { insert(member, seconds, after: turns) }
        }
    }
}
