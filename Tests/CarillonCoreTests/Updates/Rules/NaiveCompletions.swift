import CarillonCore
import CarillonWire

/// A completion as a store keeps it.
struct CompletionRow: Equatable {
    var completion: Completion
    var coalescedBy: UpdateSerial?
}

/// The state beside the completions: the updates and the binding.
struct CompletionWorld {
    var updates: [UpdateSerial: UpdateState] = [:]
    /// The updates that ask to fetch everything.
    var resyncs: Set<UpdateSerial> = []
    var revision: Int64 = 1
    var isBindingEnded = false
}

/// The results of updates at one binding, one operation after the other, over all rows.
struct NaiveCompletions {
    static let binding = BindingSerial(1)

    var world = CompletionWorld()
    private(set) var rows: [CompletionRow] = []
    /// A scenario sets this to false after each comparison.
    var needsResync = false

    private func place(_ key: CompletionKey) -> Int? { rows.firstIndex { $0.completion.key == key } }

    private mutating func insert(_ completion: Completion) {
        rows.append(CompletionRow(completion: completion, coalescedBy: completion.coalescedBy))
        rows[rows.count - 1].completion.coalescedBy = nil
        rows.removeAll { row in
            row.completion.key.update == completion.key.update && row.completion.key.entry <= completion.key.entry - 10
                && row.completion.machine.state.isFinal
        }
        rows.sort { one, other in
            let (one, other) = (one.completion.key, other.completion.key)
            return (one.update, one.entry) < (other.update, other.entry)
        }
    }

    // MARK: Operations

    mutating func offer(_ offer: UpdateOffer) -> Bool {
        guard let update = world.updates[offer.key.update] else { return false }
        if update.status != .live || offer.at >= update.expiresAt || update.isPaused { return false }
        if world.isBindingEnded || world.revision != offer.revision { return false }
        if !offer.isAgain {
            if place(offer.key) != nil || offer.attempt != 1 { return false }
            let machine = CompletionMachine(.waiting, attempt: 1)
            insert(Completion(key: offer.key, machine: machine, changedAt: offer.at, orderKey: offer.orderKey))
            return true
        }
        guard let place = place(offer.key) else { return false }
        let present = rows[place].completion
        if present.hasLeftAudience || present.machine.state.isFinal || present.machine.dueAt == nil { return false }
        if present.machine.attempt + 1 != offer.attempt { return false }
        rows[place].completion.machine.offered()
        rows[place].completion.changedAt = offer.at
        return true
    }

    mutating func evaluate(_ completion: Completion, at now: Timestamp) {
        guard place(completion.key) == nil, let update = world.updates[completion.key.update] else { return }
        if update.status != .live || now >= update.expiresAt { return }
        var completion = completion
        let isBlocked = rows.contains {
            $0.completion.orderKey == completion.orderKey && $0.completion.machine.blocksOthers
        }
        if completion.orderKey != nil, !isBlocked { completion.machine.released(at: now) }
        insert(completion)
    }

    mutating func change(
        _ key: CompletionKey, at now: Timestamp, _ change: (inout CompletionMachine) -> Bool
    ) -> Bool {
        guard let place = place(key) else { return false }
        var machine = rows[place].completion.machine
        guard change(&machine) else { return false }
        write(machine, to: place, at: now)
        return true
    }

    mutating func coalesce(_ key: CompletionKey, by coalescer: UpdateSerial, at now: Timestamp) -> Bool {
        guard let place = place(key) else { return false }
        var machine = rows[place].completion.machine
        guard machine.coalesced() else { return false }
        for other in rows.indices where rows[other].coalescedBy == key.update { rows[other].coalescedBy = coalescer }
        rows[place].coalescedBy = coalescer
        write(machine, to: place, at: now)
        return true
    }

    mutating func leftAudience(_ key: CompletionKey, at now: Timestamp) {
        guard let place = place(key) else { return }
        let before = rows[place].completion
        if before.hasLeftAudience, before.machine.state.isFinal { return }
        var machine = before.machine
        if machine.leftAudience(at: now) {
            rows.remove(at: place)
            if before.machine.blocksOthers { goOn(before.orderKey, at: now) }
            if !before.machine.state.isFinal { comeToNothing(key.update, at: now) }
        } else {
            rows[place].completion.hasLeftAudience = true
            write(machine, to: place, at: now)
        }
    }

    mutating func returned(_ key: CompletionKey, at now: Timestamp) {
        guard let place = place(key), rows[place].completion.hasLeftAudience, let update = world.updates[key.update],
            update.status == .live, update.expiresAt > now
        else { return }
        var machine = rows[place].completion.machine
        machine.returned(at: now)
        rows[place].completion.hasLeftAudience = false
        write(machine, to: place, at: now)
    }

    mutating func reportLate(_ result: UpdateResult, of key: CompletionKey) {
        guard let place = place(key), rows[place].completion.machine.state == .expired else { return }
        switch result {
        case .failed: if world.updates[key.update]?.isContent == true { needsResync = true }
        case .done, .doneWith:
            for other in rows.indices where rows[other].completion.key.update == key.update {
                if rows[other].completion.machine.state == .expired, rows[other].coalescedBy == nil {
                    rows[other].coalescedBy = key.update
                }
            }
        case .deferred, .unsupported: break
        }
    }

    // MARK: Consequences

    private mutating func write(_ machine: CompletionMachine, to place: Int, at now: Timestamp) {
        let before = rows[place].completion
        rows[place].completion.machine = machine
        rows[place].completion.changedAt = now
        if before.machine.blocksOthers, !machine.blocksOthers { goOn(before.orderKey, at: now) }
        guard !before.machine.state.isFinal else { return }
        switch machine.state {
        case .parked, .withdrawn, .superseded, .gone: comeToNothing(before.key.update, at: now)
        case .expired:
            guard world.updates[before.key.update]?.isContent == true else { return }
            var hasIt = before.machine.state != .waiting && before.machine.state != .failed
            if let due = before.machine.dueAt, due <= now { hasIt = false }
            if !hasIt || world.isBindingEnded { needsResync = true }
        default: break
        }
    }

    /// The first of an order key is due, if it was never delivered.
    private mutating func goOn(_ orderKey: String?, at now: Timestamp) {
        guard let orderKey else { return }
        let holding = rows.indices.filter { rows[$0].completion.machine.blocksOthers }
        guard let first = holding.first(where: { rows[$0].completion.orderKey == orderKey }) else { return }
        let machine = rows[first].completion.machine
        if machine.state == .waiting, machine.attempt == 0, machine.dueAt == nil {
            rows[first].completion.machine.released(at: now)
            rows[first].completion.changedAt = now
        }
    }

    /// The content that an update replaced is delivered by itself, or was missed.
    private mutating func comeToNothing(_ update: UpdateSerial, at now: Timestamp) {
        if world.resyncs.contains(update) { return }
        for place in rows.indices where rows[place].coalescedBy == update {
            guard rows[place].completion.machine.state == .superseded else { continue }
            switch world.updates[rows[place].completion.key.update]?.status {
            case .live:
                rows[place].coalescedBy = nil
                rows[place].completion.machine.revived()
                rows[place].completion.changedAt = now
                if let orderKey = rows[place].completion.orderKey {
                    goOn(orderKey, at: now)
                } else {
                    rows[place].completion.machine.released(at: now)
                }
            case .expired: needsResync = true
            case .superseded, .withdrawn, nil: break
            }
        }
    }
}
