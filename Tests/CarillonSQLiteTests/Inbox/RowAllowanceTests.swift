import CarillonCore
import CarillonWire
import GRDB
import Testing

@testable import CarillonSQLite

/// Every row counts against somebody, and the oldest go first.
@Suite(.timeLimit(.minutes(2)))
struct RowAllowanceTests {
    private let start = StoreFixture.start

    private func rows(_ sql: String, in fixture: StoreFixture) async throws -> Int {
        try await fixture.store.read { try Int.fetchOne($0, sql: sql) ?? 0 }
    }

    /// What is kept of messages, waiting or final.
    private func allRows(in fixture: StoreFixture) async throws -> Int {
        try await rows("SELECT (SELECT count(*) FROM envelope) + (SELECT count(*) FROM outcome)", in: fixture)
    }

    private func acknowledge(_ position: Int64, _ fixture: StoreFixture) -> InboxOperation {
        .settle(fixture.envelope(position).id, device: fixture.device.serial, Settlement(.acknowledged, at: start))
    }

    @Test(arguments: StoreKind.allCases)
    func `of outcomes a device keeps so many, the newest`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind, .init(outcomes: 32))
        for position in Int64(1)...100 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([acknowledge(position, fixture)])
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
                fixture.envelope(position), AppendRules(), Settlement(.acknowledged, at: start))
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

    @Test func `one device's outcomes leave another's alone`() async throws {
        let fixture = try await StoreFixture(.memory, .init(outcomes: 4))
        let other = try #require(
            try await fixture.store.insertDevice(
                NewDevice(DeviceID(Bytes16(high: 2, low: 2)), app: try StoreFixture.appID), at: start
            ) { _ in SecretHash(of: [2]) })
        let channel = try await StoreFixture.open(9, of: other, in: fixture.store)
        let theirs = fixture.envelope(1, on: channel)
        _ = try await fixture.append(theirs)
        _ = try await fixture.store.commit([
            .settle(theirs.id, device: other.serial, Settlement(.acknowledged, at: start))
        ])
        for position in Int64(2)...20 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([acknowledge(position, fixture)])
        }
        #expect(try await fixture.store.record(of: theirs.id, at: start)?.settlement?.outcome == .acknowledged)
    }

    @Test func `what was forgotten by time makes room again`() async throws {
        let fixture = try await StoreFixture(.memory, .init(outcomes: 16, outcomeRetentionSeconds: 10))
        for position in Int64(1)...16 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([acknowledge(position, fixture)])
        }
        _ = try await fixture.store.sweep(at: start.adding(seconds: 11), limit: 100)
        #expect(try await allRows(in: fixture) == 0)
        for position in Int64(17)...32 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([acknowledge(position, fixture)])
        }
        #expect(try await allRows(in: fixture) == 16)
    }

    @Test(arguments: StoreKind.allCases)
    func `of idempotency keys a device keeps so many, the newest, and none beyond their time`(kind: StoreKind) async throws {
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

    @Test(arguments: StoreKind.allCases)
    func `a message of TTL 0 that nobody was given leaves no row`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        let envelope = fixture.envelope(1, ttl: 0)
        _ = try await fixture.append(envelope)
        #expect(try await fixture.store.commit([.forget(envelope.id)]) == [.settled])
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

    @Test(arguments: StoreKind.allCases)
    func `a message that nobody was given replaces all the same, and nothing newer than itself`(kind: StoreKind) async throws
    {
        let fixture = try await StoreFixture(kind)
        _ = try await fixture.append(fixture.envelope(1), topic: "a")
        let replace = InboxOperation.replace(fixture.envelope(2, ttl: 0), AppendRules(topic: "a"))
        #expect(try await fixture.store.commit([replace]) == [.recorded(replaced: fixture.envelope(1).id)])
        _ = try await fixture.append(fixture.envelope(3), topic: "a")
        #expect(try await fixture.store.commit([replace]) == [.recorded(replaced: nil)])
        #expect(try await fixture.waiting().map(\.position) == [3])
        #expect(try await fixture.store.record(of: fixture.envelope(2).id, at: start) == nil)
    }

    @Test func `a record tells what it replaced`() async throws {
        let fixture = try await StoreFixture(.memory)
        _ = try await fixture.append(fixture.envelope(1), topic: "a")
        let record = InboxOperation.record(
            fixture.envelope(2), AppendRules(topic: "a"), Settlement(.acknowledged, at: start))
        #expect(try await fixture.store.commit([record]) == [.recorded(replaced: fixture.envelope(1).id)])
        #expect(try await fixture.outcome(1) == .replaced)
    }

    // MARK: The room of an inbox

    @Test(arguments: StoreKind.allCases)
    func `however often a topic is replaced, the inbox has the same room`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind, .init(envelopes: 2, bytes: 2 * (Envelope.overhead + 100)))
        for position in Int64(1)...50 {
            guard case .stored = try await fixture.append(fixture.envelope(position, bytes: 100), topic: "a") else {
                Issue.record("refused at \(position)")
                return
            }
        }
        #expect(try await fixture.append(fixture.envelope(51, bytes: 100)) == .stored(replaced: nil))
        #expect(try await fixture.append(fixture.envelope(52, bytes: 100)) == .full)
        guard case .stored(replaced: .some) = try await fixture.append(fixture.envelope(53, bytes: 100), topic: "a") else {
            Issue.record("a replacement finds room in an inbox that is full")
            return
        }
        #expect(try await fixture.append(fixture.envelope(54, bytes: 101), topic: "a") == .full)
    }

    @Test func `a body is not kept after the outcome`() async throws {
        let fixture = try await StoreFixture(.memory)
        for position in Int64(1)...4 {
            _ = try await fixture.append(fixture.envelope(position, ttl: position == 4 ? 1 : 60))
        }
        _ = try await fixture.store.commit([
            acknowledge(1, fixture),
            .settle(fixture.envelope(2).id, device: nil, Settlement(.cancelled, at: start)),
        ])
        _ = try await fixture.store.sweep(at: start.adding(seconds: 2), limit: 10)
        _ = try await fixture.store.closeChannel(fixture.first.id, device: fixture.device.serial, at: start)
        #expect(try await rows("SELECT count(*) FROM outcome", in: fixture) == 4)
        #expect(try await rows("SELECT count(*) FROM envelope", in: fixture) == 0)
    }

    // MARK: Anonymous devices

    @Test(arguments: StoreKind.allCases)
    func `an anonymous device is idle when it was not seen, sooner when it has no channel`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        let store = fixture.store
        func device(_ number: UInt64, seenAt: Int64) async throws -> Device {
            try #require(
                try await store.insertDevice(
                    NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, isAnonymous: true),
                    at: start.adding(seconds: seenAt)
                ) { _ in SecretHash(of: [9, UInt8(number)]) })
        }
        let old = try await device(1, seenAt: 0)
        let bare = try await device(2, seenAt: 50)
        let used = try await device(3, seenAt: 50)
        for device in [old, used] { _ = try await StoreFixture.open(1, of: device, in: store) }
        func idle(_ seen: Int64, _ unused: Int64) async throws -> [DeviceSerial] {
            try await store.idleDevices(
                seenBefore: start.adding(seconds: seen), orWithoutChannelBefore: start.adding(seconds: unused), limit: 10)
        }
        #expect(try await idle(-1, -1).isEmpty)
        #expect(try await idle(0, 0) == [old.serial])
        #expect(try await idle(0, 50) == [old.serial, bare.serial])
        #expect(try await idle(50, 50) == [old.serial, bare.serial, used.serial])
        try await store.markSeen([old.serial], at: start.adding(seconds: 100))
        #expect(try await idle(50, 50) == [bare.serial, used.serial])
        #expect(try await store.device(fixture.device.id)?.isAnonymous == false)
    }

    // MARK: Keys

    private func claim(_ number: Int64, validFor seconds: Int64 = 100) -> IdempotencyClaim {
        let key = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        return IdempotencyClaim(keyHash: key, fingerprint: key, validUntil: start.adding(seconds: seconds))
    }

    private func remembers(_ number: Int64, _ fixture: StoreFixture, at now: Timestamp) async throws -> Bool {
        let again = fixture.envelope(900 + number, at: now)
        if case .duplicate = try await fixture.append(again, claim: claim(number, validFor: 1000)) { return true }
        return false
    }

    @Test func `of keys that are too many the oldest are forgotten`() async throws {
        let fixture = try await StoreFixture(.memory, .init(idempotencyKeys: 16))
        for number in Int64(1)...20 {
            _ = try await fixture.append(fixture.envelope(number), claim: claim(number, validFor: 100 + number))
        }
        for number in Int64(10)...20 { #expect(try await remembers(number, fixture, at: start)) }
        #expect(try await !remembers(1, fixture, at: start))
    }

    @Test func `the key of a message that was refused counts for nothing`() async throws {
        let fixture = try await StoreFixture(.memory, .init(envelopes: 8, idempotencyKeys: 16))
        for number in Int64(1)...8 {
            _ = try await fixture.append(fixture.envelope(number), claim: claim(number))
        }
        for number in Int64(100)...200 {
            #expect(try await fixture.append(fixture.envelope(number), claim: claim(number)) == .full)
        }
        _ = try await fixture.store.commit([acknowledge(8, fixture)])
        #expect(try await fixture.append(fixture.envelope(201), claim: claim(201)) == .stored(replaced: nil))
        for number in Int64(1)...8 { #expect(try await remembers(number, fixture, at: start)) }
    }

    @Test func `keys that are past keeping make room`() async throws {
        let fixture = try await StoreFixture(.memory, .init(idempotencyKeys: 16))
        for number in Int64(1)...16 {
            _ = try await fixture.append(fixture.envelope(number), claim: claim(number, validFor: 10))
        }
        let later = start.adding(seconds: 11)
        while try await !fixture.store.sweep(at: later, limit: 100).isDone {}
        for number in Int64(101)...116 {
            _ = try await fixture.append(fixture.envelope(number, at: later), claim: claim(number))
        }
        for number in Int64(101)...116 { #expect(try await remembers(number, fixture, at: later)) }
    }

    // MARK: What is counted again

    @Test func `what waits counts the same when it is counted anew`() async throws {
        let room = 10 * (Envelope.overhead + 10)
        let fixture = try await StoreFixture(.memory, .init(bytes: room))
        for position in Int64(1)...10 {
            #expect(try await fixture.append(fixture.envelope(position)) == .stored(replaced: nil))
        }
        #expect(try await fixture.append(fixture.envelope(11)) == .full)
        fixture.store.memory.usage.forgetAll()
        #expect(try await fixture.append(fixture.envelope(11)) == .full)
    }

    @Test func `what ended with a channel makes room for outcomes that are counted anew`() async throws {
        let fixture = try await StoreFixture(.memory, .init(outcomes: 16))
        for position in Int64(1)...10 {
            _ = try await fixture.append(fixture.envelope(position, on: fixture.second))
        }
        for position in Int64(11)...16 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([acknowledge(position, fixture)])
        }
        _ = try await fixture.store.closeChannel(fixture.second.id, device: fixture.device.serial, at: start)
        for position in Int64(17)...20 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([acknowledge(position, fixture)])
            #expect(try await rows("SELECT count(*) FROM outcome", in: fixture) <= 16)
        }
    }

    @Test func `what expires earlier than what was there when the inbox was full makes room in time`() async throws {
        let fixture = try await StoreFixture(.memory, .init(envelopes: 2))
        for position in Int64(1)...2 { _ = try await fixture.append(fixture.envelope(position)) }
        #expect(try await fixture.append(fixture.envelope(3)) == .full)
        _ = try await fixture.store.commit([acknowledge(2, fixture)])
        #expect(try await fixture.append(fixture.envelope(4, ttl: 1)) == .stored(replaced: nil))
        let later = start.adding(seconds: 2)
        #expect(try await fixture.append(fixture.envelope(5, at: later)) == .stored(replaced: nil))
    }

    @Test func `a device that is deleted leaves no more outcomes than it may have`() async throws {
        let fixture = try await StoreFixture(.memory, .init(outcomes: 16))
        for position in Int64(1)...10 {
            _ = try await fixture.append(fixture.envelope(position))
            _ = try await fixture.store.commit([acknowledge(position, fixture)])
        }
        for position in Int64(11)...20 { _ = try await fixture.append(fixture.envelope(position)) }
        _ = try await fixture.store.deleteDevice(fixture.device.serial, at: start)
        #expect(try await allRows(in: fixture) == 16)
        #expect(try await fixture.outcome(20) == .gone)
    }

    @Test func `a moment at which nothing is left to be done is forgotten`() async throws {
        let fixture = try await StoreFixture(.memory)
        _ = try await fixture.append(fixture.envelope(1, ttl: 1))
        try await fixture.store.database.write { try $0.execute(sql: "DELETE FROM envelope") }
        #expect(try await fixture.store.sweep(at: start.adding(seconds: 60), limit: 10).expired.isEmpty)
        #expect(try await rows("SELECT count(*) FROM due", in: fixture) == 0)
    }
}
