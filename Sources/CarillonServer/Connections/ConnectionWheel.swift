import CarillonCore
import Metrics
import NIOCore

/// A connection that wants to be called when it was silent too long.
protocol WheelMember: AnyObject {
    /// Where the member is; kept here so that it can be taken out in one step.
    var place: ConnectionWheel.Place? { get set }
    /// The member's time has come. Answers after how many seconds it is to be called again; nil takes it out.
    func wheelTurned(at second: Int) -> Int?
}

/// The clock of all connections of one event loop: one timer, and a slot for each second.
///
/// A connection that is heard from does not move; when its slot comes up, it says when it is due next. Nobody is called
/// early: what happens within a second counts as having happened at its end, so that a member is called after its time,
/// and less than a second after it. A time that is longer than the wheel goes around it more than once.
final class ConnectionWheel {
    struct Place {
        /// The second in which the member is due.
        var due: Int32
        var index: Int32
    }

    /// A year; with it a place lasts for decades of uptime.
    private static let longestSeconds = 31_536_000

    private let delay = ServerMetric.eventLoopDelay.timer()
    private var lastTurn = NIODeadline.now()
    private var slots: [[any WheelMember]]
    private var turns = 0
    /// The second that what happens now is dated with: the end of the one that runs.
    var now: Int { turns + 1 }

    init(slots: Int) { self.slots = Array(repeating: [], count: max(2, slots)) }

    func start(on eventLoop: any EventLoop) {
        let wheel = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            wheel.value.noteDelay()
            wheel.value.turn()
        }
    }

    /// Calls the member when that many seconds have passed, one at least.
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
