import CarillonCore
import Synchronization

/// The positions of the envelopes and outcomes of each device. The newest entries are in memory, the others in the table
/// `inbox_index`.
///
/// Messages are stored in the order of their arrival, so that a message for one device is next to messages for others. An entry
/// by device, written with each message, would change a page of its own each time. Instead, entries are collected in memory. A
/// full generation is moved to the table in the order of devices, in parts that are written with the commits
/// (``InboxIndexWriter``). The changes of the entries in memory are also appended to `inbox_log` with each commit. The log is
/// read when the store is opened.
///
/// Only the writing connection changes the index. A reader must read the index *before* its transaction begins: entries that have
/// left memory by then are in the table that the transaction sees. Rows of entries in memory that are not in the reader's tables,
/// because they are not committed yet or were removed, are not found there.
final class InboxIndex: Sendable {
    /// A device, with its waiting envelopes or its outcomes.
    struct Key: Hashable, Comparable {
        /// Twice the device's serial number, plus one for outcomes.
        let number: Int64

        init(_ device: DeviceSerial, isFinal: Bool) { number = device.rawValue << 1 | (isFinal ? 1 : 0) }
        init(number: Int64) { self.number = number }

        var device: Int64 { number >> 1 }
        var isFinal: Bool { number & 1 == 1 }

        static func < (left: Key, right: Key) -> Bool { left.number < right.number }
    }

    struct Slot: Equatable {
        var position: Int64
        /// The size that the entry adds to the usage of the inbox.
        var size: Int
    }

    fileprivate struct Generation {
        var slots: [Key: [Slot]] = [:]
        var count = 0

        mutating func add(_ slot: Slot, to key: Key) {
            let isNew = Self.insert(slot, into: &slots[key, default: []])
            if isNew { count += 1 }
        }

        /// Returns whether the position was present.
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
        /// The number of the generation that is being collected; nil until the log was read.
        var number: Int64?
        var gathering = Generation()
        /// The number of logged changes of this generation, additions and removals.
        var logged = 0
        /// Entries that were removed by a transaction that is not on disk yet. Readers must find them until then.
        var leaving: [Key: [Slot]] = [:]
        /// The generation that is being moved to the table. It stays in memory until all of it is in the table.
        var moving = Generation()
        /// The keys that must still be moved, in reverse order.
        var unmoved: [Key] = []
        /// Whether a generation is being moved. Its log is needed until it is in the table.
        var isMoving = false
        var isHandedOut = false
        /// The log of generations up to this number is not needed any more.
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

    /// - Parameter capacity: The number of entries that are collected before they are moved.
    init(capacity: Int = 65_536) { self.capacity = capacity }

    // MARK: Reading

    /// Returns the entries of a key in memory, in order, for the writing connection.
    ///
    /// - Throws: ``StoreFault`` if the index is not read.
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

    /// Returns the entries that a reader must search after a position: the entries in memory, and removed ones whose removal is
    /// not on disk.
    ///
    /// - Throws: ``StoreFault`` if the index is not read.
    func slotsForReaders(of key: Key, after position: Int64 = 0) throws(StoreFault) -> [Slot] {
        try state.withLock { state throws(StoreFault) in
            let slots = try state.slots(of: key, after: position)
            guard let leaving = state.leaving[key] else { return slots }
            return Self.merged(slots, leaving.after(position))
        }
    }

    /// The number of times at which entries left memory. If it changed after a reader read its tables, the reader can miss
    /// entries.
    var departures: Int { state.withLock { $0.departures } }

    /// Whether memory has no entries of a key for readers, and no entries left memory since a number of departures. All entries
    /// are then in tables that were read after that.
    ///
    /// - Throws: ``StoreFault`` if the index is not read.
    func isEmpty(_ key: Key, since departures: Int) throws(StoreFault) -> Bool {
        try state.withLock { state throws(StoreFault) in
            guard state.departures == departures, state.leaving[key] == nil else { return false }
            return try state.slots(of: key, after: 0).isEmpty
        }
    }

    /// Merges both collections in order. An entry in both is returned once.
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

    // MARK: Changes

    func add(_ slot: Slot, to key: Key) {
        state.withLock { state in
            state.gathering.add(slot, to: key)
            state.logged += 1
        }
    }

    /// Removes an entry. Returns whether the table may have it. Readers find the entry until ``removedForAll()``.
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

    /// The removals are on disk, so readers do not need the removed entries any more.
    func removedForAll() {
        state.withLock { state in
            state.leaving = [:]
            state.departures += 1
        }
    }

    // MARK: Generations

    /// Removes all entries, because they cannot be read. See ``take(_:duringTransaction:)``.
    func lose(duringTransaction: Bool = false) { replace(with: State(), keepsLeaving: duringTransaction) }

    private func replace(with other: State, keepsLeaving: Bool) {
        state.withLock { state in
            let (departures, leaving) = (state.departures + 1, state.leaving)
            state = other
            state.departures = departures
            if keepsLeaving { state.leaving = leaving }
        }
    }

    /// Returns the number of the generation that is being collected.
    ///
    /// - Throws: ``StoreFault`` if the index is not read.
    func number() throws(StoreFault) -> Int64 {
        guard let number = state.withLock({ $0.number }) else {
            throw StoreFault(.unavailable, "the inbox index is not read yet")
        }
        return number
    }

    /// The entries in memory, as read from the log. The last generation is being collected, and the earlier ones are being moved.
    struct Reading {
        fileprivate var number: Int64 = 0
        fileprivate var gathering = Generation()
        fileprivate var moving = Generation()
        fileprivate var logged = 0
        /// Whether the log has earlier generations.
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

    /// Replaces the entries by the entries that were read from the log.
    ///
    /// - Parameter duringTransaction: Whether the transaction that changed the entries continues, as after the rollback of a
    ///   savepoint. Its other removals are not on disk then, and readers must find the removed entries until ``removedForAll()``.
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

    /// Begins to move the collected generation if it is full and no other is being moved. Returns whether it began.
    func beginMovingWhenFull() -> Bool {
        let keys = state.withLock { state -> [Key]? in
            // Entries that are added and removed again leave nothing in memory, but make the log longer.
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
        // No other caller changes the keys, and readers need not wait for the sorting.
        let unmoved = keys.sorted(by: >)
        state.withLock { $0.unmoved = unmoved }
        return true
    }

    private static let loggedPerEntry = 4

    /// Returns the next entries to move, at least `count` if there are so many, and whether they are the last; nil if no
    /// generation is being moved.
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

    /// The generation is in the table and committed. Until then, readers that began earlier must find it in memory.
    func moved() {
        var arrived = Generation()
        state.withLock { state in
            guard state.isHandedOut, let number = state.number else { return }
            // A large generation is deallocated outside the lock.
            swap(&arrived, &state.moving)
            state.isMoving = false
            state.isHandedOut = false
            state.movedUpTo = number - 1
            state.departures += 1
        }
    }

    /// Returns the last generation whose log can be removed now; nil if no log can be removed.
    func takeMovedUpTo() -> Int64? {
        state.withLock { state in
            defer { state.movedUpTo = nil }
            return state.movedUpTo
        }
    }
}

extension [InboxIndex.Slot] {
    /// Returns the index of the position, or the index at which it would be inserted.
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
