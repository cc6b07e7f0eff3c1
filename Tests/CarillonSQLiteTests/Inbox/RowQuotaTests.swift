import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// Every row counts against a quota, and the oldest are removed first.
@Suite(.timeLimit(.minutes(5)))
struct RowQuotaTests {
    private let start = StoreFixture.start

    private func rows(_ sql: String, in fixture: StoreFixture) async throws -> Int {
        try await fixture.sqlite.read { try Int.fetchOne($0, sql: sql) ?? 0 }
    }

    /// The stored rows of messages, waiting or final.
    private func allRows(in fixture: StoreFixture) async throws -> Int {
        try await rows("SELECT (SELECT count(*) FROM envelope) + (SELECT count(*) FROM outcome)", in: fixture)
    }

    @Test(arguments: SQLiteStores.all)
    func `a limited number of a device's outcomes is kept, the newest`(kind: SQLiteStores) async throws {
        let fixture = try await StoreFixture(kind, .init(outcomes: 32))
        for position in Int64(1)...100 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([fixture.acknowledge(position)])
            #expect(try await allRows(in: fixture) <= 32)
        }
        #expect(try await fixture.outcome(100) == .acknowledged)
        #expect(try await fixture.outcome(1) == nil)
        #expect(try await allRows(in: fixture) >= 28)
    }

    @Test func `messages that never waited, were replaced, or ended with their channel count the same`() async throws {
        let fixture = try await StoreFixture(.memory, .init(outcomes: 16))
        for position in Int64(1)...50 {
            let record = InboxOperation.record(
                fixture.envelope(position), AppendRules(), FinalOutcome(.acknowledged, at: start))
            #expect(try await fixture.store.commit([record]) == [.recorded(replaced: nil)])
        }
        #expect(try await allRows(in: fixture) <= 16)
        for position in Int64(51)...100 { _ = try await fixture.append(fixture.envelope(position), topic: "a") }
        #expect(try await rows("SELECT count(*) FROM outcome", in: fixture) <= 16)
        for position in Int64(101)...150 { _ = try await fixture.append(fixture.envelope(position, on: fixture.second)) }
        _ = try await fixture.store.closeChannel(fixture.second.id, device: fixture.device.serial, at: start)
        #expect(try await rows("SELECT count(*) FROM outcome", in: fixture) <= 16)
        #expect(try await fixture.waiting().map(\.position) == [100])
    }

    @Test func `rows that ended by time make space again`() async throws {
        let fixture = try await StoreFixture(.memory, .init(outcomes: 16, outcomeRetentionSeconds: 10))
        for position in Int64(1)...16 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([fixture.acknowledge(position)])
        }
        _ = try await fixture.store.sweep(at: start.adding(seconds: 11), limit: 100)
        #expect(try await allRows(in: fixture) == 0)
        for position in Int64(17)...32 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([fixture.acknowledge(position)])
        }
        #expect(try await allRows(in: fixture) == 16)
    }

    @Test(arguments: SQLiteStores.all)
    func `a limited number of a device's idempotency keys is kept, the newest, and none beyond its time`(
        kind: SQLiteStores
    ) async throws {
        let fixture = try await StoreFixture(kind, .init(idempotencyKeys: 32))
        func claim(_ number: Int64) -> IdempotencyClaim {
            IdempotencyClaim(
                keyHash: number.bigEndianBytes, fingerprint: [1], validUntil: start.adding(seconds: 1000 + number))
        }
        for number in Int64(1)...100 {
            let channel = number % 2 == 0 ? fixture.first : fixture.second
            #expect(
                try await fixture.append(fixture.envelope(number, on: channel), claim: claim(number))
                    == .stored(replaced: nil))
        }
        #expect((28...32).contains(try await rows("SELECT count(*) FROM idempotency", in: fixture)))
        guard case .duplicate = try await fixture.append(fixture.envelope(200), claim: claim(100)) else {
            Issue.record("the newest key is forgotten")
            return
        }
        for _ in 0..<2 { _ = try await fixture.store.sweep(at: start.adding(seconds: 1100), limit: 1000) }
        #expect(try await rows("SELECT count(*) FROM idempotency", in: fixture) == 0)
    }

    @Test(arguments: SQLiteStores.all)
    func `a message of TTL 0 that no device received leaves no row`(kind: SQLiteStores) async throws {
        let fixture = try await StoreFixture(kind)
        let envelope = fixture.envelope(1, ttl: 0)
        _ = try await fixture.append(envelope)
        #expect(try await fixture.store.commit([.forget(envelope.id)]) == [.finished])
        #expect(try await allRows(in: fixture) == 0)
        #expect(try await fixture.store.commit([.forget(envelope.id)]) == [.notWaiting])
    }

    @Test func `only a message of TTL 0 can be forgotten, and only by its whole identifier`() async throws {
        let fixture = try await StoreFixture(.memory)
        _ = try await fixture.append(fixture.envelope(1))
        _ = try await fixture.append(fixture.envelope(2, ttl: 0))
        let forged = MessageID(position: 2, secret: Bytes16(high: 0, low: 0))
        #expect(
            try await fixture.store.commit([.forget(fixture.envelope(1).id), .forget(forged)]) == [.notWaiting, .notWaiting])
        #expect(try await allRows(in: fixture) == 2)
    }

    @Test func `a body is not kept after the outcome`() async throws {
        let fixture = try await StoreFixture(.memory)
        for position in Int64(1)...4 {
            _ = try await fixture.append(fixture.envelope(position, ttl: position == 4 ? 1 : 60))
        }
        _ = try await fixture.store.commit([
            fixture.acknowledge(1),
            .finish(fixture.envelope(2).id, device: nil, FinalOutcome(.cancelled, at: start)),
        ])
        _ = try await fixture.store.sweep(at: start.adding(seconds: 2), limit: 10)
        _ = try await fixture.store.closeChannel(fixture.first.id, device: fixture.device.serial, at: start)
        #expect(try await rows("SELECT count(*) FROM outcome", in: fixture) == 4)
        #expect(try await rows("SELECT count(*) FROM envelope", in: fixture) == 0)
    }

    @Test func `the number of waiting messages is the same when it is counted anew`() async throws {
        let room = 10 * (Envelope.overhead + 10)
        let fixture = try await StoreFixture(.memory, .init(bytes: room))
        for position in Int64(1)...10 {
            #expect(try await fixture.append(fixture.envelope(position)) == .stored(replaced: nil))
        }
        #expect(try await fixture.append(fixture.envelope(11)) == .full)
        fixture.sqlite.memory.usage.forgetAll()
        #expect(try await fixture.append(fixture.envelope(11)) == .full)
    }

    @Test func `rows that ended with a channel make space for outcomes that are counted anew`() async throws {
        let fixture = try await StoreFixture(.memory, .init(outcomes: 16))
        for position in Int64(1)...10 {
            _ = try await fixture.append(fixture.envelope(position, on: fixture.second))
        }
        for position in Int64(11)...16 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([fixture.acknowledge(position)])
        }
        _ = try await fixture.store.closeChannel(fixture.second.id, device: fixture.device.serial, at: start)
        for position in Int64(17)...20 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([fixture.acknowledge(position)])
            #expect(try await rows("SELECT count(*) FROM outcome", in: fixture) <= 16)
        }
    }

    @Test func `a device that is deleted leaves no more outcomes than it may have`() async throws {
        let fixture = try await StoreFixture(.memory, .init(outcomes: 16))
        for position in Int64(1)...10 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([fixture.acknowledge(position)])
        }
        for position in Int64(11)...20 { _ = try await fixture.append(fixture.envelope(position)) }
        _ = try await fixture.store.deleteDevice(fixture.device.serial, at: start)
        #expect(try await allRows(in: fixture) == 16)
        #expect(try await fixture.outcome(20) == .gone)
    }

    @Test func `a moment at which nothing is left to be done is forgotten`() async throws {
        let fixture = try await StoreFixture(.memory)
        _ = try await fixture.append(fixture.envelope(1, ttl: 1))
        try await fixture.sqlite.database.write { try $0.execute(sql: "DELETE FROM envelope") }
        #expect(try await fixture.store.sweep(at: start.adding(seconds: 60), limit: 10).expired.isEmpty)
        #expect(try await rows("SELECT count(*) FROM due", in: fixture) == 0)
    }
}
