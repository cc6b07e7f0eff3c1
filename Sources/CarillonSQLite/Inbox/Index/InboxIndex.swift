import CarillonCore
import Synchronization

/// Where what a device has stands in the tables: the youngest part here, the rest in the table `inbox_index`.
///
/// Messages are stored in the order in which they come, so that one for a device lands beside those of others. An entry by
/// device, written with each, would touch a page of its own each time. Entries gather here instead; a full generation goes to
/// the table in the order of devices, in slices beside the commits (``InboxIndexWriter``). What is here is in `inbox_log` as
/// well, appended with each commit, from which a start reads it back.
///
/// Only the writing connection changes this. Whoever reads asks here *before* its transaction begins: what has left memory by
/// then is in the table that it sees. What is here and not in its tables yet, or not any more, it does not find there.
final class InboxIndex: Sendable {
    /// What belongs to a device, waiting or final.
    struct Key: Hashable, Comparable {
        /// Twice the device's number, and one more for what is final.
        let number: Int64

        init(_ device: DeviceSerial, isFinal: Bool) { number = device.rawValue << 1 | (isFinal ? 1 : 0) }
        init(number: Int64) { self.number = number }

        var device: Int64 { number >> 1 }
        var isFinal: Bool { number & 1 == 1 }

        static func < (left: Key, right: Key) -> Bool { left.number < right.number }
    }

    struct Slot: Equatable {
        var position: Int64
        /// What it counts for in the inbox.
        var size: Int
    }

    fileprivate struct Generation {
        var slots: [Key: [Slot]] = [:]
        var count = 0

        mutating func add(_ slot: Slot, to key: Key) {
            let isNew = Self.insert(slot, into: &slots[key, default: []])
            if isNew { count += 1 }
        }

        /// Answers whether it was here.
        mutating func remove(_ position: Int64, from key: Key) -> Bool {
            guard let index = slots[key]?.place(of: position), slots[key]?[safe: index]?.position == position else {
                return false
            }
            slots[key]?.remove(at: index)
            if slots[key]?.isEmpty == true { slots[key] = nil }
            count -= 1
            return true
        }

        func contains(_ position: Int64, of key: Key) -> Bool {
            guard let slots = slots[key] else { return false }
            return slots[safe: slots.place(of: position)]?.position == position
        }

        private static func insert(_ slot: Slot, into slots: inout [Slot]) -> Bool {
            guard let last = slots.last, last.position >= slot.position else {
                slots.append(slot)
                return true
            }
            let place = slots.place(of: slot.position)
            guard slots[place].position != slot.position else { return false }
            slots.insert(slot, at: place)
            return true
        }
    }

    private struct State {
        /// Of the generation that gathers; nil until it was read.
        var number: Int64?
        var gathering = Generation()
        /// What was logged of it, additions and removals.
        var logged = 0
        /// Was removed by a transaction that is not on disk yet: who reads must find it until then.
        var leaving: [Key: [Slot]] = [:]
        /// Is on its way to the table, and stays here until it is there.
        var moving = Generation()
        /// What of it is to be moved yet, the last first.
        var unmoved: [Key] = []
        /// Something moves, and its log is needed until it has arrived.
        var isMoving = false
        var isHandedOut = false
        /// The log of generations up to this is needed no more.
        var movedUpTo: Int64?
        /// See ``InboxIndex/departures``.
        var departures = 0

        func slots(of key: Key, after position: Int64) throws(StoreFault) -> [Slot] {
            guard number != nil else { throw StoreFault(.unavailable, "the inbox index is not read yet") }
            let young = gathering.slots[key]?.after(position) ?? []
            guard let moving = moving.slots[key] else { return Array(young) }
            return InboxIndex.merged(moving.after(position), young)
        }
    }

    private let capacity: Int
    private let state = Mutex(State())

    /// - Parameter capacity: How many entries are gathered before they are moved.
    init(capacity: Int = 65_536) { self.capacity = capacity }

    // MARK: Looking

    /// What is here of a key, in order, for the writing connection.
    ///
    /// - Throws: ``StoreFault`` while nothing is known.
    func slots(of key: Key) throws(StoreFault) -> [Slot] {
        try state.withLock { state throws(StoreFault) in try state.slots(of: key, after: 0) }
    }

    /// Whether a position of a key is in memory, for the writing connection. A position that is not in memory can be in the
    /// table.
    ///
    /// - Throws: ``StoreFault`` if the index is not read.
    func contains(_ position: Int64, of key: Key) throws(StoreFault) -> Bool {
        try state.withLock { state throws(StoreFault) in
            guard state.number != nil else { throw StoreFault(.unavailable, "the inbox index is not read yet") }
            return state.gathering.contains(position, of: key) || state.moving.contains(position, of: key)
        }
    }

    /// What a reader must look for beyond a position: the same, and what is removed but for the disk.
    ///
    /// - Throws: ``StoreFault`` while nothing is known.
    func slotsForReaders(of key: Key, after position: Int64 = 0) throws(StoreFault) -> [Slot] {
        try state.withLock { state throws(StoreFault) in
            let slots = try state.slots(of: key, after: position)
            guard let leaving = state.leaving[key] else { return slots }
            return Self.merged(slots, leaving.after(position))
        }
    }

    /// Counts how often entries left memory. If the number changed after a reader read its tables, the reader can lack
    /// entries.
    var departures: Int { state.withLock { $0.departures } }

    /// Whether memory has no entries of a key for readers, and no entries left memory since a number of departures. All
    /// entries are then in the tables that were read since.
    ///
    /// - Throws: ``StoreFault`` if the index is not read.
    func isEmpty(_ key: Key, since departures: Int) throws(StoreFault) -> Bool {
        try state.withLock { state throws(StoreFault) in
            guard state.departures == departures, state.leaving[key] == nil else { return false }
            return try state.slots(of: key, after: 0).isEmpty
        }
    }

    /// Both in one order, what is in both once.
    static func merged(_ one: some Collection<Slot>, _ other: some Collection<Slot>) -> [Slot] {
        if one.isEmpty { return Array(other) }
        if other.isEmpty { return Array(one) }
        var merged: [Slot] = []
        merged.reserveCapacity(one.count + other.count)
        var (left, right) = (one.makeIterator(), other.makeIterator())
        var (first, second) = (left.next(), right.next())
        while let slot = first ?? second {
            switch (first, second) {
            case (let one?, let other?) where one.position == other.position:
                merged.append(one)
                (first, second) = (left.next(), right.next())
            case (let one?, let other?) where other.position < one.position:
                merged.append(other)
                second = right.next()
            case (_?, _):
                merged.append(slot)
                first = left.next()
            case (nil, _):
                merged.append(slot)
                second = right.next()
            }
        }
        return merged
    }

    var count: Int { state.withLock { $0.gathering.count + $0.moving.count } }

    // MARK: Changing

    func add(_ slot: Slot, to key: Key) {
        state.withLock { state in
            state.gathering.add(slot, to: key)
            state.logged += 1
        }
    }

    /// Answers whether the table may have it. Readers find it until ``removedForAll()``.
    func remove(_ slot: Slot, from key: Key) -> Bool {
        let position = slot.position
        return state.withLock { state in
            state.logged += 1
            if state.leaving[key, default: []].last.map({ $0.position < position }) ?? true {
                state.leaving[key, default: []].append(slot)
            } else {
                state.leaving[key] = Self.merged(state.leaving[key] ?? [], [slot])
            }
            if state.gathering.remove(position, from: key) { return false }
            _ = state.moving.remove(position, from: key)
            return true
        }
    }

    /// What was removed is on disk, where nobody finds it any more.
    func removedForAll() {
        state.withLock { state in
            state.leaving = [:]
            state.departures += 1
        }
    }

    // MARK: Generations

    /// Forgets the entries, as they cannot be read. See ``take(_:duringTransaction:)``.
    func lose(duringTransaction: Bool = false) { replace(with: State(), keepsLeaving: duringTransaction) }

    private func replace(with other: State, keepsLeaving: Bool) {
        state.withLock { state in
            let (departures, leaving) = (state.departures + 1, state.leaving)
            state = other
            state.departures = departures
            if keepsLeaving { state.leaving = leaving }
        }
    }

    /// Of the generation that gathers.
    ///
    /// - Throws: ``StoreFault`` while nothing is known.
    func number() throws(StoreFault) -> Int64 {
        guard let number = state.withLock({ $0.number }) else {
            throw StoreFault(.unavailable, "the inbox index is not read yet")
        }
        return number
    }

    /// What was here, as the log says it from its beginning: the last generation gathers, those before it are moving.
    struct Reading {
        fileprivate var number: Int64 = 0
        fileprivate var gathering = Generation()
        fileprivate var moving = Generation()
        fileprivate var logged = 0
        /// There is a log of earlier generations.
        fileprivate var isMoving = false
        private var hasBegun = false

        mutating func begin(_ generation: Int64) {
            defer { hasBegun = true }
            guard generation > number else { return }
            isMoving = hasBegun
            logged = 0
            if moving.slots.isEmpty {
                moving = gathering
            } else {
                for (key, slots) in gathering.slots { for slot in slots { moving.add(slot, to: key) } }
            }
            gathering = Generation()
            number = generation
        }

        mutating func take(_ change: IndexLog.Change) {
            logged += 1
            switch change {
            case .added(let slot, let key): gathering.add(slot, to: key)
            case .removed(let position, let key):
                if !gathering.remove(position, from: key) { _ = moving.remove(position, from: key) }
            }
        }
    }

    /// Replaces the entries by those that were read from the log.
    ///
    /// - Parameter duringTransaction: Whether the transaction that changed the entries goes on, as after the rollback of a savepoint. Its
    ///   other removals are not on disk then, and readers must find the removed entries until ``removedForAll()``.
    func take(_ reading: Reading, duringTransaction: Bool = false) {
        var read = State()
        read.number = reading.number
        read.gathering = reading.gathering
        read.logged = reading.logged
        read.moving = reading.moving
        read.isMoving = reading.isMoving
        read.unmoved = reading.moving.slots.keys.sorted(by: >)
        replace(with: read, keepsLeaving: duringTransaction)
    }

    /// Begins to move what was gathered, when it is enough and nothing else is on its way. Answers whether it did.
    func beginMovingWhenFull() -> Bool {
        let keys = state.withLock { state -> [Key]? in
            // What comes and goes leaves nothing here, but much in the log.
            let isFull = state.gathering.count >= capacity || state.logged >= Self.loggedPerEntry * capacity
            guard let number = state.number, !state.isMoving, isFull else { return nil }
            state.moving = state.gathering
            state.gathering = Generation()
            state.logged = 0
            state.isMoving = true
            state.isHandedOut = false
            state.number = number + 1
            return Array(state.moving.slots.keys)
        }
        guard let keys else { return false }
        // Nobody else changes it, and who reads need not wait for it.
        let unmoved = keys.sorted(by: >)
        state.withLock { $0.unmoved = unmoved }
        return true
    }

    private static let loggedPerEntry = 4

    /// The next entries to be moved, so many at least when there are, and whether they are the last; nil when nothing is.
    func nextToMove(atLeast count: Int) -> (entries: [(Key, [Slot])], areLast: Bool)? {
        state.withLock { state in
            guard state.isMoving, !state.isHandedOut else { return nil }
            var (entries, taken): ([(Key, [Slot])], Int) = ([], 0)
            while taken < count, let key = state.unmoved.popLast() {
                guard let slots = state.moving.slots[key] else { continue }
                entries.append((key, slots))
                taken += slots.count
            }
            state.isHandedOut = state.unmoved.isEmpty
            return (entries, state.isHandedOut)
        }
    }

    /// What was moving is in the table for everybody to see. Until then whoever began to read before must find it here.
    func moved() {
        var arrived = Generation()
        state.withLock { state in
            guard state.isHandedOut, let number = state.number else { return }
            // What is large is let go outside.
            swap(&arrived, &state.moving)
            state.isMoving = false
            state.isHandedOut = false
            state.movedUpTo = number - 1
            state.departures += 1
        }
    }

    /// Up to which generation the log can be forgotten now.
    func takeMovedUpTo() -> Int64? {
        state.withLock { state in
            defer { state.movedUpTo = nil }
            return state.movedUpTo
        }
    }
}

extension [InboxIndex.Slot] {
    /// Where the position is, or would be.
    fileprivate func place(of position: Int64) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].position < position { low = middle + 1 } else { high = middle }
        }
        return low
    }

    fileprivate func after(_ position: Int64) -> ArraySlice<InboxIndex.Slot> {
        position <= 0 ? self[...] : self[place(of: position + 1)...]
    }

    fileprivate subscript(safe index: Int) -> InboxIndex.Slot? { index < count ? self[index] : nil }
}
