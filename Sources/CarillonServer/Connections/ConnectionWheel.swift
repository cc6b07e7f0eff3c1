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
/// A connection that is heard from does not move; when its slot comes up, it says when it is due next.
final class ConnectionWheel {
    struct Place {
        var slot: Int32
        var index: Int32
    }

    private var slots: [[any WheelMember]]
    /// Seconds since the wheel was started.
    private(set) var now = 0

    init(slots: Int) { self.slots = Array(repeating: [], count: max(2, slots)) }

    func start(on eventLoop: any EventLoop) {
        let wheel = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in wheel.value.turn() }
    }

    func insert(_ member: any WheelMember, afterSeconds seconds: Int) {
        let slot = (now + min(max(1, seconds), slots.count - 1)) % slots.count
        member.place = Place(slot: Int32(slot), index: Int32(slots[slot].count))
        slots[slot].append(member)
    }

    func remove(_ member: any WheelMember) {
        guard let place = member.place else { return }
        member.place = nil
        let slot = Int(place.slot)
        let last = slots[slot].removeLast()
        guard last !== member else { return }
        slots[slot][Int(place.index)] = last
        last.place = place
    }

    func turn() {
        now += 1
        let slot = now % slots.count
        let due = slots[slot]
        slots[slot] = []
        for member in due { member.place = nil }
        for member in due {
            if let seconds = member.wheelTurned(at: now) { insert(member, afterSeconds: seconds) }
        }
    }
}
