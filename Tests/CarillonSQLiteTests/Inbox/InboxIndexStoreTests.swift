import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestStores
import TestSupport
import Testing

@testable import CarillonSQLite

/// The index and the tables that it is of.
@Suite(.timeLimit(.minutes(5)))
struct InboxIndexStoreTests {
    private let start = StoreFixture.start

    private struct Entry: Hashable {
        var device: Int64
        var isFinal: Bool
        var position: Int64
        var size: Int?
    }

    /// Compares the entries of the index with the rows of the tables, which all belong to one device.
    private func check(_ store: SQLiteStore, _ owner: DeviceSerial, _ note: Comment) async throws {
        let (indexed, standing) = try await store.database.read { db in
            var indexed: Set<Entry> = []
            for device in [1, owner.rawValue, owner.rawValue + 1] {
                for isFinal in [false, true] {
                    let key = InboxIndex.Key(DeviceSerial(device), isFinal: isFinal)
                    let slots = try InboxIndexWriter.slots(
                        of: key, inMemory: store.memory.index.slots(of: key), after: 0, limit: .max, in: db)
                    #expect(slots.map(\.position) == slots.map(\.position).sorted(), note)
                    for slot in slots {
                        indexed.insert(
                            Entry(
                                device: device, isFinal: isFinal, position: slot.position,
                                size: isFinal ? nil : slot.size))
                    }
                }
            }
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT device, 0 AS is_final, position, size FROM envelope
                    UNION ALL SELECT device, 1, position, NULL FROM outcome
                    """)
            return (
                indexed,
                Set(rows.map { Entry(device: $0[0], isFinal: $0[1], position: $0[2], size: $0[3]) })
            )
        }
        #expect(indexed == standing, note)
        let total = try await store.waitingInAll()
        #expect(total.envelopes == standing.count { !$0.isFinal }, note)
        #expect(total.bytes == standing.reduce(0) { $0 + ($1.size ?? 0) }, note)
    }

    /// The state after the kill of a process.
    private func killed(_ directory: String) throws -> String {
        let copy = try TemporaryDirectory.make()
        for name in try FileManager.default.contentsOfDirectory(atPath: directory) where !name.hasSuffix("-shm") {
            try FileManager.default.copyItem(atPath: directory + "/" + name, toPath: copy + "/" + name)
        }
        return copy
    }

    @Test(arguments: RandomSeed.some(4))
    func `the index contains the stored entries through every change, fault, kill and move`(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let capacity = Int.random(in: 1...40, using: &random)
        var directory = try TemporaryDirectory.make()
        let limits = InboxLimits(envelopes: 40, outcomes: 25, outcomeRetentionSeconds: 50)
        // The faults are the connection's own, as a file with other triggers than its version's is refused.
        func open() async throws -> SQLiteStore {
            let store = try SQLiteStore(
                directory: directory, settings: StoreSettings(inbox: limits), indexCapacity: capacity)
            try await store.database.writeWithoutTransaction { db in
                try db.execute(
                    sql: """
                        CREATE TEMP TRIGGER poison BEFORE INSERT ON main.envelope WHEN NEW.position % 31 = 0
                        BEGIN SELECT RAISE(ABORT, 'poison'); END;
                        CREATE TEMP TRIGGER venom BEFORE INSERT ON main.envelope WHEN NEW.position % 97 = 0
                        BEGIN SELECT RAISE(ROLLBACK, 'venom'); END;
                        """)
            }
            return store
        }
        var fixture = try await StoreFixture(open())
        var (position, now): (Int64, Timestamp) = (0, start)
        for step in 0..<100 {
            let note: Comment = "seed \(seed), step \(step)"
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<16:
                let batch = (0..<Int.random(in: 1...30, using: &random)).map { _ -> InboxOperation in
                    let finalOutcome = FinalOutcome(.acknowledged, at: now)
                    let old = fixture.envelope(Int64.random(in: max(1, position - 60)...max(1, position), using: &random))
                    switch Int.random(in: 0..<10, using: &random) {
                    case 0..<4: return .finish(old.id, device: fixture.device.serial, finalOutcome)
                    case 4:
                        position += 1
                        return .record(fixture.envelope(position, at: now), AppendRules(), finalOutcome)
                    default:
                        // Some arrive a little later than entries that were created after them.
                        position += 1
                        let topic = Int.random(in: 0..<6, using: &random) == 0 ? "t" : nil
                        return .append(
                            fixture.envelope(
                                position, ttl: [0, 1, 5, 60].randomElement(using: &random) ?? 1,
                                bytes: Int.random(in: 0...50, using: &random), at: now),
                            AppendRules(topic: topic))
                    }
                }
                _ = try? await fixture.store.commit(batch.shuffled(using: &random))
            case 16:
                now = now.adding(seconds: Int64.random(in: 0...20, using: &random))
                while try await !fixture.store.sweep(at: now, limit: 10).isDone {}
            case 17:
                _ = try await fixture.store.closeChannel(fixture.second.id, device: fixture.device.serial, at: now)
            default:
                // The store that was killed is opened again as a copy; the other one is closed.
                let copy = try killed(directory)
                try fixture.sqlite.close()
                directory = copy
                fixture = fixture.again(try await open())
            }
            try await check(fixture.sqlite, fixture.device.serial, note)
        }
        _ = try await fixture.store.deleteDevice(fixture.device.serial, at: now)
        try await check(fixture.sqlite, fixture.device.serial, "seed \(seed), at the end")
        #expect(try await fixture.store.waitingInAll() == .init())
        let wrong = try await SQLiteStores.memory.wrongCounters(in: fixture.store)
        #expect(wrong == [], "seed \(seed)")
        try fixture.sqlite.close()
    }

    private actor Counter {
        private var last: Int64 = 0
        func next() -> Int64 {
            last += 1
            return last
        }
    }

    @Test func `a reader sees all entries that were committed before, while entries move`() async throws {
        let store = try SQLiteStore(directory: TemporaryDirectory.make(), indexCapacity: 50)
        let fixture = try await StoreFixture(store)
        let counter = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<150 {
                        let position = await counter.next()
                        let result = try await fixture.append(fixture.envelope(position))
                        #expect(result == .stored(replaced: nil))
                        let seen = try await fixture.waiting(after: position - 1, limit: 1)
                        #expect(seen.first?.position == position)
                        if position % 3 == 0 {
                            let settle = InboxOperation.finish(
                                fixture.envelope(position).id, device: nil, FinalOutcome(.cancelled, at: start))
                            #expect(try await store.commit([settle]) == [.finished])
                            let left = try await fixture.waiting(after: position - 1, limit: 1)
                            #expect(left.first?.position != position)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await fixture.waiting(limit: 1000).map(\.position) == (Int64(1)...600).filter { $0 % 3 != 0 })
        try await check(store, fixture.device.serial, "at the end")
        try store.close()
    }

    @Test func `a poll sees all that was committed before, while entries move`() async throws {
        let store = try SQLiteStore(directory: TemporaryDirectory.make(), indexCapacity: 5)
        let fixture = try await StoreFixture(store)
        let counter = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in UInt64(10)...13 {
                let new = NewDevice(DeviceID(Bytes16(high: 2, low: number)), app: try StoreFixture.appID)
                let device = try #require(try await fixture.insert(new, secret: [UInt8(number)]))
                let channel = try await StoreFixture.open(1, of: device, in: store)
                let name = DeviceName.id(device.id, credential: device.credentialHash)
                group.addTask {
                    for _ in 0..<100 {
                        let envelope = fixture.envelope(await counter.next(), on: channel)
                        let results = try await store.commit([.append(envelope, AppendRules())])
                        #expect(results == [.stored(replaced: nil)])
                        let full = try await store.poll(of: name, at: start)
                        #expect(full?.waiting?.map(\.id) == [envelope.id])
                        let finalOutcome = FinalOutcome(.cancelled, at: start)
                        let ends = try await store.commit([.finish(envelope.id, device: nil, finalOutcome)])
                        #expect(ends == [.finished])
                        let empty = try await store.poll(of: name, at: start)
                        #expect(empty?.waiting?.isEmpty == true)
                    }
                }
            }
            try await group.waitForAll()
        }
        try store.close()
    }

    @Test func `readers find a message whose removal is not committed when another savepoint fails`() async throws {
        let fixture = try await StoreFixture(.file)
        let (store, start) = (fixture.sqlite, start)
        let envelope = fixture.envelope(1)
        _ = try await fixture.append(envelope)
        let name = DeviceName.id(fixture.device.id, credential: fixture.device.credentialHash)
        let (before, behind) = (Gate(), Gate())
        async let first: Void = store.group.run { _ in before.pass() }
        await before.reached()
        // In the run of all in one go, the last work is not reached. In the run with savepoints it waits behind the failure.
        let works: [@Sendable () async throws -> Void] = [
            { _ = try await store.commit([.finish(envelope.id, device: nil, FinalOutcome(.cancelled, at: start))]) },
            { try await store.group.run { _ -> Void in throw StoreFault(.full, "its own") } },
            { try await store.group.run { _ in behind.pass() } },
        ]
        async let results = together(works) { before.open() }
        await behind.reached()
        let polled = try await store.poll(of: name, at: start)
        let waiting = try await fixture.waiting()
        behind.open()
        let outcomes = await results
        try await first
        #expect(outcomes.map { (try? $0.get()) != nil } == [true, false, true])
        #expect(polled?.waiting?.map(\.id) == [envelope.id])
        #expect(waiting.map(\.id) == [envelope.id])
        #expect(try await fixture.waiting().isEmpty)
        let after = try await store.poll(of: name, at: start)
        #expect(after?.waiting?.isEmpty == true)
    }

    @Test func `moved entries are no longer in the log, and the number of collected entries stays bounded`() async throws {
        let store = try SQLiteStore(directory: TemporaryDirectory.make(), indexCapacity: 100)
        let fixture = try await StoreFixture(store)
        var channels: [PushChannel] = []
        for number in UInt64(10)..<70 {
            let new = NewDevice(DeviceID(Bytes16(high: 2, low: number)), app: try StoreFixture.appID)
            let device = try #require(try await fixture.insert(new, secret: [UInt8(number)]))
            channels.append(try await StoreFixture.open(1, of: device, in: store))
        }
        for first in stride(from: 1, to: 6000, by: 10) {
            let operations = (first..<first + 10).map { position in
                InboxOperation.append(
                    fixture.envelope(Int64(position), on: channels[position % channels.count]), AppendRules())
            }
            _ = try await store.commit(operations)
            #expect(store.memory.index.count <= 220)
        }
        let logged = try await store.database.read { db in
            try Int.fetchOne(db, sql: "SELECT coalesce(sum(length(changes)), 0) FROM inbox_log") ?? 0
        }
        #expect(logged <= 220 * 21)
        #expect(try await store.waitingCount(device: channels[0].device, at: start) == 100)
        try store.close()
    }

    @Test func `the log stays bounded where messages come and go`() async throws {
        let directory = try TemporaryDirectory.make()
        let store = try SQLiteStore(directory: directory, indexCapacity: 50)
        let fixture = try await StoreFixture(store)
        for first in stride(from: Int64(1), to: 3000, by: 10) {
            let positions = first..<first + 10
            _ = try await store.commit(positions.map { .append(fixture.envelope($0), AppendRules()) })
            let later = start.adding(seconds: 1)
            _ = try await store.commit(
                positions.map {
                    .finish(fixture.envelope($0).id, device: fixture.device.serial, FinalOutcome(.acknowledged, at: later))
                })
            // Outcomes are forgotten as fast.
            _ = try await store.sweep(at: start.adding(seconds: 8 * 86_400), limit: 1000)
            let bytes = try await store.database.read { db in
                try Int.fetchOne(db, sql: "SELECT coalesce(sum(length(changes)), 0) FROM inbox_log") ?? 0
            }
            #expect(bytes <= 21 * 3 * 4 * 50)
        }
        try await check(store, fixture.device.serial, "at the end")
        try store.close()
        let again = try SQLiteStore(directory: directory, indexCapacity: 50)
        try await check(again, fixture.device.serial, "opened again")
        try again.close()
    }

    @Test func `when writing fails, each change fails once, and none is mistaken for another`() async throws {
        let fixture = try await StoreFixture(.file)
        try await fixture.sqlite.database.write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER poison BEFORE INSERT ON inbox_log
                    BEGIN SELECT RAISE(ABORT, 'poison'); END
                    """)
        }
        let operations = (Int64(1)...6).map { InboxOperation.append(fixture.envelope($0), AppendRules()) }
        let results = try await fixture.store.commit(operations)
        #expect(results.count == 6)
        #expect(results.allSatisfy { if case .failed = $0 { true } else { false } })
        #expect(try await fixture.waiting().isEmpty)
    }

    @Test func `an entry that was to become due and was withdrawn is written again`() async throws {
        let fixture = try await StoreFixture(.file)
        try await fixture.sqlite.database.write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER venom BEFORE INSERT ON envelope WHEN NEW.position = 2
                    BEGIN SELECT RAISE(ROLLBACK, 'venom'); END
                    """)
        }
        let both = (Int64(1)...2).map { InboxOperation.append(fixture.envelope($0, ttl: 5), AppendRules()) }
        await #expect(throws: StoreFault.self) {
            try await fixture.sqlite.changeInboxes { _, transaction in try transaction.perform(both) }
        }
        #expect(try await fixture.waiting().isEmpty)
        #expect(try await fixture.append(fixture.envelope(3, ttl: 5)) == .stored(replaced: nil))
        let swept = try await fixture.store.sweep(at: start.adding(seconds: 60), limit: 10)
        #expect(swept.expired.map(\.position) == [3])
    }

    @Test func `an unreadable log is damage, and is reported`() async throws {
        let directory = try TemporaryDirectory.make()
        let fixture = try await StoreFixture(try SQLiteStore(directory: directory))
        _ = try await fixture.append(fixture.envelope(1))
        try await fixture.sqlite.database.write { try $0.execute(sql: "UPDATE inbox_log SET changes = x'00'") }
        try fixture.sqlite.close()
        let fault = #expect(throws: StoreOpenFault.self) { try SQLiteStore(directory: directory) }
        #expect(fault?.description.contains("index") == true)
    }

    @Test func `outcomes are kept as long as the current setting, regardless of the earlier one`() async throws {
        let directory = try TemporaryDirectory.make()
        func open(_ seconds: Int64) throws -> SQLiteStore {
            try SQLiteStore(
                directory: directory, settings: StoreSettings(inbox: InboxLimits(outcomeRetentionSeconds: seconds)))
        }
        var fixture = try await StoreFixture(open(100))
        for position in Int64(1)...3 {
            _ = try await fixture.append(fixture.envelope(position))
            let settle = InboxOperation.finish(
                fixture.envelope(position).id, device: nil,
                FinalOutcome(.cancelled, at: start.adding(seconds: position)))
            _ = try await fixture.store.commit([settle])
        }
        try fixture.sqlite.close()
        fixture = fixture.again(try open(1000))
        for seconds in [500, 900, 1002] as [Int64] {
            while try await !fixture.store.sweep(at: start.adding(seconds: seconds), limit: 10).isDone {}
        }
        #expect(try await fixture.outcome(3, at: start.adding(seconds: 1002)) == .cancelled)
        while try await !fixture.store.sweep(at: start.adding(seconds: 1100), limit: 10).isDone {}
        let left = try await fixture.sqlite.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM outcome") }
        #expect(left == 0)
        try fixture.sqlite.close()
    }
}
