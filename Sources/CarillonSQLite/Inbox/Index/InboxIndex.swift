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
        /// Is on its way to the table, and stays here until it is there.
        var moving = Generation()
        /// What of it is to be moved yet, the last first.
        var unmoved: [Key] = []
        /// The log of generations up to this is needed no more.
        var movedUpTo: Int64?

        var isMoving: Bool { !moving.slots.isEmpty || !unmoved.isEmpty }
    }

    private let capacity: Int
    private let state = Mutex(State())

    /// - Parameter capacity: How many entries are gathered before they are moved.
    init(capacity: Int = 65_536) { self.capacity = capacity }

    // MARK: Looking

    /// What is here of a key beyond a position, in order.
    ///
    /// - Throws: ``StoreFault`` while nothing is known.
    func slots(of key: Key, after position: Int64 = 0) throws(StoreFault) -> [Slot] {
        try state.withLock { state throws(StoreFault) in
            guard state.number != nil else { throw StoreFault(.unavailable, "the index of the inboxes is not read") }
            let young = state.gathering.slots[key]?.after(position) ?? []
            guard let moving = state.moving.slots[key] else { return Array(young) }
            return Self.merged(moving.after(position), young)
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

    func add(_ slot: Slot, to key: Key) { state.withLock { $0.gathering.add(slot, to: key) } }

    /// Answers whether the table may have it.
    func remove(_ position: Int64, from key: Key) -> Bool {
        state.withLock { state in
            if state.gathering.remove(position, from: key) { return false }
            _ = state.moving.remove(position, from: key)
            return true
        }
    }

    // MARK: Generations

    /// What was here cannot be read.
    func lose() { state.withLock { $0 = State() } }

    /// Of the generation that gathers.
    var number: Int64 { state.withLock { $0.number ?? 0 } }

    /// What was here, as the log says it from its beginning: the last generation gathers, those before it are moving.
    struct Reading {
        fileprivate var number: Int64 = 0
        fileprivate var gathering = Generation()
        fileprivate var moving = Generation()

        mutating func begin(_ generation: Int64) {
            guard generation > number else { return }
            if moving.slots.isEmpty {
                moving = gathering
            } else {
                for (key, slots) in gathering.slots { for slot in slots { moving.add(slot, to: key) } }
            }
            gathering = Generation()
            number = generation
        }

        mutating func take(_ change: IndexLog.Change) {
            switch change {
            case .added(let slot, let key): gathering.add(slot, to: key)
            case .removed(let position, let key):
                if !gathering.remove(position, from: key) { _ = moving.remove(position, from: key) }
            }
        }
    }

    func take(_ reading: Reading) {
        state.withLock { state in
            state = State()
            state.number = reading.number
            state.gathering = reading.gathering
            state.moving = reading.moving
            state.unmoved = reading.moving.slots.keys.sorted(by: >)
        }
    }

    /// Begins to move what was gathered, when it is enough and nothing else is on its way. Answers whether it did.
    func beginMovingWhenFull() -> Bool {
        state.withLock { state in
            guard let number = state.number, !state.isMoving, state.gathering.count >= capacity else { return false }
            state.moving = state.gathering
            state.unmoved = state.moving.slots.keys.sorted(by: >)
            state.gathering = Generation()
            state.number = number + 1
            return true
        }
    }

    /// The next entries to be moved, so many at least when there are, and whether they are the last; nil when nothing is.
    func nextToMove(atLeast count: Int) -> (entries: [(Key, [Slot])], areLast: Bool)? {
        state.withLock { state in
            guard !state.unmoved.isEmpty else { return nil }
            var (entries, taken): ([(Key, [Slot])], Int) = ([], 0)
            while taken < count, let key = state.unmoved.popLast() {
                guard let slots = state.moving.slots[key] else { continue }
                entries.append((key, slots))
                taken += slots.count
            }
            return (entries, state.unmoved.isEmpty)
        }
    }

    /// What was moving is in the table for everybody to see. Until then whoever began to read before must find it here.
    func moved() {
        state.withLock { state in
            guard state.unmoved.isEmpty, let number = state.number else { return }
            state.moving = Generation()
            state.movedUpTo = number - 1
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
