import CarillonCore
import Testing

@testable import CarillonSQLite

/// The part in memory, by itself.
struct InboxIndexTests {
    private let index = InboxIndex(capacity: 4)
    private let key = InboxIndex.Key(DeviceSerial(1), isFinal: false)
    private let other = InboxIndex.Key(DeviceSerial(1), isFinal: true)

    init() { index.take(InboxIndex.Reading()) }

    private func add(_ positions: Int64...) {
        for position in positions { index.add(.init(position: position, size: 10), to: key) }
    }

    /// Of removed entries, nothing remains for readers.
    private func positions(after: Int64 = 0) throws -> [Int64] {
        index.removedForAll()
        let positions = try index.slotsForReaders(of: key, after: after).map(\.position)
        #expect(try positions == index.slots(of: key).map(\.position).filter { $0 > after })
        return positions
    }

    @Test func `entries are in order of position, for any order of their arrival, each once`() throws {
        add(5, 1, 3, 5, 9, 1)
        #expect(try positions() == [1, 3, 5, 9])
        #expect(try positions(after: 3) == [5, 9])
        #expect(try positions(after: 4) == [5, 9])
        #expect(try positions(after: 9).isEmpty)
        #expect(index.count == 4)
        #expect(try index.slots(of: other).isEmpty)
    }

    @Test func `collected entries that leave need no read of the table`() throws {
        add(1, 2)
        #expect(!index.remove(.init(position: 1, size: 10), from: key))
        #expect(index.remove(.init(position: 1, size: 10), from: key))
        #expect(index.remove(.init(position: 2, size: 10), from: other))
        #expect(try positions() == [2])
        #expect(index.count == 1)
    }

    @Test func `a full generation moves while the next gathers, and is seen until it has arrived`() throws {
        add(1, 2, 3)
        #expect(!index.beginMovingWhenFull())
        #expect(index.nextToMove(atLeast: 1) == nil)
        add(4)
        #expect(try index.number() == 0)
        #expect(index.beginMovingWhenFull())
        #expect(try index.number() == 1)
        add(6, 5, 8, 7)
        // One at a time.
        #expect(!index.beginMovingWhenFull())
        #expect(try positions() == [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(try positions(after: 3) == [4, 5, 6, 7, 8])
        // An entry that moves may be in the table already.
        #expect(index.remove(.init(position: 3, size: 10), from: key))
        let next = try #require(index.nextToMove(atLeast: 1))
        #expect(next.areLast)
        #expect(next.entries.map(\.0) == [key])
        #expect(next.entries.flatMap(\.1).map(\.position) == [1, 2, 4])
        #expect(try positions() == [1, 2, 4, 5, 6, 7, 8])
        #expect(index.takeMovedUpTo() == nil)
        index.moved()
        #expect(try positions() == [5, 6, 7, 8])
        #expect(index.takeMovedUpTo() == 0)
        #expect(index.takeMovedUpTo() == nil)
        #expect(index.beginMovingWhenFull())
    }

    @Test func `entries move in the order of devices, a part at a time`() throws {
        for device in [3, 1, 2] as [Int64] {
            for isFinal in [true, false] {
                index.add(.init(position: device, size: 1), to: .init(DeviceSerial(device), isFinal: isFinal))
            }
        }
        #expect(index.beginMovingWhenFull())
        var (moved, steps): ([InboxIndex.Key], Int) = ([], 0)
        while let next = index.nextToMove(atLeast: 2) {
            moved += next.entries.map(\.0)
            steps += 1
            #expect(next.areLast == (moved.count == 6))
        }
        #expect(steps == 3)
        #expect(moved == moved.sorted())
        #expect(moved.map(\.device) == [1, 1, 2, 2, 3, 3])
        #expect(moved.map(\.isFinal) == [false, true, false, true, false, true])
    }

    @Test func `logged entries are read back: the last generation collects, and earlier ones move`() throws {
        var reading = InboxIndex.Reading()
        func added(_ position: Int64, _ generation: Int64) {
            reading.begin(generation)
            reading.take(.added(.init(position: position, size: 10), key))
        }
        added(1, 3)
        added(2, 3)
        added(8, 4)
        added(3, 5)
        added(4, 5)
        for position in [1, 4, 77] as [Int64] { reading.take(.removed(position, key)) }
        index.take(reading)
        #expect(try index.number() == 5)
        #expect(try positions() == [2, 3, 8])
        #expect(!index.remove(.init(position: 3, size: 10), from: key))
        #expect(index.nextToMove(atLeast: 9)?.entries.flatMap(\.1).map(\.position) == [2, 8])
    }

    @Test func `readers find a removed entry until the removal is on disk, and writers do not`() throws {
        add(1, 2, 3, 4)
        #expect(index.beginMovingWhenFull())
        add(5, 6)
        for position in [6, 2, 5] as [Int64] { _ = index.remove(.init(position: position, size: 10), from: key) }
        // An entry that is in the table only.
        _ = index.remove(.init(position: 9, size: 10), from: key)
        #expect(try index.slots(of: key).map(\.position) == [1, 3, 4])
        #expect(try index.slotsForReaders(of: key).map(\.position) == [1, 2, 3, 4, 5, 6, 9])
        #expect(try index.slotsForReaders(of: key, after: 4).map(\.position) == [5, 6, 9])
        index.removedForAll()
        #expect(try index.slotsForReaders(of: key).map(\.position) == [1, 3, 4])
    }

    @Test func `readers find removed entries after the rollback of a savepoint, until the whole transaction ends`() throws {
        add(1)
        _ = index.remove(.init(position: 1, size: 10), from: key)
        let before = index.departures
        index.take(InboxIndex.Reading(), duringTransaction: true)
        #expect(try index.slots(of: key).isEmpty)
        #expect(try index.slotsForReaders(of: key).map(\.position) == [1])
        #expect(index.departures > before)
        let now = index.departures
        #expect(try !index.isEmpty(key, since: now))
        // An unreadable log loses the entries, but not the removals.
        index.lose(duringTransaction: true)
        index.take(InboxIndex.Reading(), duringTransaction: true)
        #expect(try index.slotsForReaders(of: key).map(\.position) == [1])
        index.take(InboxIndex.Reading())
        #expect(try index.slotsForReaders(of: key).isEmpty)
    }

    @Test func `an inbox is empty for readers only if no entry left since their read began`() throws {
        let before = index.departures
        #expect(try index.isEmpty(key, since: before))
        add(1)
        #expect(try !index.isEmpty(key, since: before))
        #expect(try index.isEmpty(other, since: before))
        _ = index.remove(.init(position: 1, size: 10), from: key)
        #expect(try !index.isEmpty(key, since: before), "the removal is not on disk")
        index.removedForAll()
        #expect(try !index.isEmpty(key, since: before))
        let removed = index.departures
        #expect(try index.isEmpty(key, since: removed))
        add(2, 3, 4, 5)
        #expect(index.beginMovingWhenFull())
        #expect(index.nextToMove(atLeast: 9)?.areLast == true)
        #expect(try !index.isEmpty(key, since: removed))
        index.moved()
        #expect(try !index.isEmpty(key, since: removed))
        let moved = index.departures
        #expect(try index.isEmpty(key, since: moved))
        index.take(InboxIndex.Reading())
        #expect(try !index.isEmpty(key, since: moved))
    }

    @Test func `entries that arrive and leave are moved as well, because of their log`() throws {
        for position in Int64(1)...7 {
            add(position)
            _ = index.remove(.init(position: position, size: 10), from: key)
            #expect(!index.beginMovingWhenFull())
        }
        add(8)
        _ = index.remove(.init(position: 8, size: 10), from: key)
        #expect(index.beginMovingWhenFull())
        let next = try #require(index.nextToMove(atLeast: 1))
        #expect(next.entries.isEmpty && next.areLast)
        #expect(index.nextToMove(atLeast: 1) == nil)
        index.moved()
        #expect(index.takeMovedUpTo() == 0)
    }

    @Test func `a lost index does not count as empty`() {
        add(1)
        index.lose()
        #expect(throws: StoreFault.self) { try index.slotsForReaders(of: key) }
        #expect(throws: StoreFault.self) { try index.slots(of: key) }
        #expect(throws: StoreFault.self) { try index.number() }
    }

    @Test func `two orders are merged, and an entry in both exists once`() {
        func slots(_ positions: Int64...) -> [InboxIndex.Slot] { positions.map { .init(position: $0, size: 1) } }
        #expect(InboxIndex.merged(slots(1, 4, 5), slots(2, 4, 9)) == slots(1, 2, 4, 5, 9))
        #expect(InboxIndex.merged(slots(), slots(2)) == slots(2))
        #expect(InboxIndex.merged(slots(3), slots()) == slots(3))
        #expect(InboxIndex.merged(slots(1, 2), slots(1, 2)) == slots(1, 2))
    }

    @Test func `a log is read as it was written, and nothing else is taken for one`() throws {
        let changes: [IndexLog.Change] = [
            .added(.init(position: 1 << 60, size: 4224), key), .removed(.max, other),
            .added(.init(position: 0, size: 0), .init(DeviceSerial(.max >> 1), isFinal: true)),
        ]
        var log = IndexLog()
        for change in changes { log.note(change) }
        #expect(log.additions == 2)
        #expect(try read(log.bytes) == changes)
        #expect(try read([]).isEmpty)
        #expect(throws: StoreFault.self) { try read(log.bytes.dropLast()) }
        #expect(throws: StoreFault.self) { try read([2] + log.bytes.dropFirst()) }
    }

    private func read(_ bytes: some Collection<UInt8>) throws -> [IndexLog.Change] {
        var changes: [IndexLog.Change] = []
        try Array(bytes).withUnsafeBytes { bytes in try IndexLog.forEachChange(in: bytes) { changes.append($0) } }
        return changes
    }
}
