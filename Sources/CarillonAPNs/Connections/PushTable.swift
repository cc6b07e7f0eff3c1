/// The pushes that a pool holds, each in a slot that is used again.
struct PushTable {
    /// A push that is not over.
    struct Pending {
        enum Place {
            case queued
            case delayed
            case stream(Link, UInt32)
        }

        let submission: Submission
        let beganAt: Moment
        var deadline: Moment
        var place = Place.queued
        var answers = 0
        var returns = 0
        var resets = 0
        var lostCount = 0
        /// The refusal after which it waits to be sent again.
        var refusal: RawAnswer?
        var renewals = 0
        var moves = 0
        var waited = Duration.zero
        var token: ProviderToken?
    }

    private var slots: [Pending?] = []
    private var generations: [UInt32] = []
    private var freeSlots: [UInt32] = []
    /// Pushes that wait to be queued again, and until when.
    private var delayed: [(push: PushID, until: Moment)] = []
    private(set) var count = 0

    var delayedCount: Int { delayed.count }

    /// Whether the push is not over.
    func holds(_ push: PushID) -> Bool {
        generations[Int(push.slot)] == push.generation && slots[Int(push.slot)] != nil
    }

    /// A push that is held; looked at and changed in place.
    subscript(push: PushID) -> Pending? {
        _read { yield slots[Int(push.slot)] }
        _modify { yield &slots[Int(push.slot)] }
    }

    mutating func add(_ submission: Submission, _ now: Moment) -> PushID {
        let slot: UInt32
        if let free = freeSlots.popLast() {
            slot = free
        } else {
            slot = UInt32(slots.count)
            slots.append(nil)
            generations.append(0)
        }
        slots[Int(slot)] = Pending(submission: submission, beganAt: now, deadline: now + submission.timeout)
        count += 1
        return PushID(slot: slot, generation: generations[Int(slot)])
    }

    /// - Returns: who waits for the push, and since when; nil when it is over already.
    mutating func remove(_ push: PushID) -> (completion: Completion, beganAt: Moment)? {
        let slot = Int(push.slot)
        guard holds(push), let began = slots[slot]?.beganAt, let completion = slots[slot]?.submission.completion else {
            return nil
        }
        slots[slot] = nil
        generations[slot] &+= 1
        freeSlots.append(push.slot)
        count -= 1
        return (completion, began)
    }

    /// Lets a push wait before it is queued again.
    mutating func postpone(_ push: PushID, until: Moment) {
        self[push]?.place = .delayed
        delayed.append((push, until))
    }

    /// The postponed pushes whose time has come; they count as queued.
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

    /// The pushes that something is true of.
    func pushes(where isWanted: (Pending) -> Bool) -> [PushID] {
        slots.indices.compactMap { slot in
            guard let pending = slots[slot], isWanted(pending) else { return nil }
            return PushID(slot: UInt32(slot), generation: generations[slot])
        }
    }

    /// The pushes whose deadline has come.
    func expired(_ now: Moment) -> [PushID] {
        slots.indices.compactMap { slot in
            guard let deadline = slots[slot]?.deadline, deadline <= now else { return nil }
            return PushID(slot: UInt32(slot), generation: generations[slot])
        }
    }
}
