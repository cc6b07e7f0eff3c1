/// The unfinished pushes of a pool. Each has a slot, which is reused.
struct PendingPushes {
    private var slots: [Submission?] = []
    private var generations: [UInt32] = []
    private var freeSlots: [UInt32] = []
    /// Pushes that wait to be queued again, with the time at which they are.
    private var delayed: [(push: PushID, until: Moment)] = []
    private(set) var count = 0

    var delayedCount: Int { delayed.count }

    /// Whether the push is unfinished.
    func holds(_ push: PushID) -> Bool {
        generations[Int(push.slot)] == push.generation && slots[Int(push.slot)] != nil
    }

    /// Returns an unfinished push.
    subscript(push: PushID) -> Submission? { slots[Int(push.slot)] }

    mutating func add(_ submission: Submission, _ now: Moment) -> PushID {
        let slot: UInt32
        if let free = freeSlots.popLast() {
            slot = free
        } else {
            slot = UInt32(slots.count)
            slots.append(nil)
            generations.append(0)
        }
        slots[Int(slot)] = submission
        count += 1
        let push = PushID(slot: slot, generation: generations[Int(slot)])
        submission.push = push
        submission.beganAt = now
        submission.deadline = now + submission.timeout
        return push
    }

    /// - Returns: The push; nil if it is finished already.
    mutating func remove(_ push: PushID) -> Submission? {
        let slot = Int(push.slot)
        guard holds(push), let submission = slots[slot] else { return nil }
        slots[slot] = nil
        generations[slot] &+= 1
        freeSlots.append(push.slot)
        count -= 1
        return submission
    }

    /// Delays a push before it is queued again.
    mutating func postpone(_ push: PushID, until: Moment) {
        self[push]?.place = .delayed
        delayed.append((push, until))
    }

    /// Returns the delayed pushes that are due, and marks them as queued.
    mutating func takeDue(_ now: Moment) -> [PushID] {
        guard !delayed.isEmpty else { return [] }
        var due: [PushID] = []
        var waiting: [(push: PushID, until: Moment)] = []
        for (push, until) in delayed where holds(push) {
            if until <= now { due.append(push) } else { waiting.append((push, until)) }
        }
        delayed = waiting
        for push in due { self[push]?.place = .queued }
        return due
    }

    /// Returns the pushes that match a condition.
    func pushes(where isWanted: (Submission) -> Bool) -> [PushID] {
        slots.indices.compactMap { slot in
            guard let submission = slots[slot], isWanted(submission) else { return nil }
            return PushID(slot: UInt32(slot), generation: generations[slot])
        }
    }

    /// Returns the pushes whose deadline has passed.
    func expired(_ now: Moment) -> [PushID] {
        slots.indices.compactMap { slot in
            guard let deadline = slots[slot]?.deadline, deadline <= now else { return nil }
            return PushID(slot: UInt32(slot), generation: generations[slot])
        }
    }
}
