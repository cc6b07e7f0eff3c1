import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import Testing

@Suite(.timeLimit(.minutes(2)))
struct InboxConformanceTests {
    private let start = StoreFixture.start

    @Test(arguments: StoreKind.allCases)
    func `what was appended waits, in order, byte for byte`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        let envelopes = [
            fixture.envelope(1), fixture.envelope(2, on: fixture.second, bytes: 0), fixture.envelope(5, bytes: 5000),
        ]
        for envelope in envelopes { #expect(try await fixture.append(envelope) == .stored(replaced: nil)) }
        #expect(try await fixture.waiting() == envelopes)
        #expect(try await fixture.waiting(after: 2) == [envelopes[2]])
        #expect(try await fixture.waiting(limit: 1) == [envelopes[0]])
        #expect(try await fixture.store.waitingCount(device: fixture.device.serial, at: start) == 3)
    }

    @Test(arguments: StoreKind.allCases)
    func `a limit of bytes gives at least one envelope`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        for position in 1...3 { _ = try await fixture.append(fixture.envelope(Int64(position), bytes: 1000)) }
        let some = try await fixture.store.waiting(device: fixture.device.serial, after: 0, limit: 9, bytes: 10, at: start)
        #expect(some?.map(\.position) == [1])
    }

    @Test(arguments: StoreKind.allCases)
    func `an acknowledged envelope is gone, and its outcome can be asked for`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        for position in 1...3 { _ = try await fixture.append(fixture.envelope(Int64(position))) }
        let settle = InboxOperation.settle(
            fixture.envelope(2).id, device: fixture.device.serial, Settlement(.acknowledged, code: 100, at: start))
        #expect(try await fixture.store.commit([settle, settle]) == [.settled, .notWaiting])
        #expect(try await fixture.waiting().map(\.position) == [1, 3])
        let record = try #require(try await fixture.store.record(of: fixture.envelope(2).id, at: start))
        #expect(record.settlement == Settlement(.acknowledged, code: 100, at: start))
        #expect(try await fixture.outcome(1) == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `another device, or another secret, settles nothing`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        _ = try await fixture.append(fixture.envelope(1))
        let forged = MessageID(position: 1, secret: Bytes16(high: 0, low: 0))
        let results = try await fixture.store.commit([
            .settle(fixture.envelope(1).id, device: DeviceSerial(99), Settlement(.acknowledged, at: start)),
            .settle(forged, device: fixture.device.serial, Settlement(.acknowledged, at: start)),
            .settle(forged, device: nil, Settlement(.cancelled, at: start)),
        ])
        #expect(results == [.notWaiting, .notWaiting, .notWaiting])
        #expect(try await fixture.waiting().count == 1)
        #expect(try await fixture.store.record(of: forged, at: start) == nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `a nack after the ack adds its code and changes nothing else`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        _ = try await fixture.append(fixture.envelope(1))
        let id = fixture.envelope(1).id
        _ = try await fixture.store.commit([
            .settle(id, device: fixture.device.serial, Settlement(.acknowledged, code: 100, at: start)),
            .settle(id, device: fixture.device.serial, Settlement(.failed, code: 301, at: start)),
            .settle(id, device: nil, Settlement(.cancelled, at: start)),
        ])
        let record = try #require(try await fixture.store.record(of: id, at: start))
        #expect(record.settlement == Settlement(.acknowledged, code: 301, at: start))
    }

    @Test(arguments: StoreKind.allCases)
    func `TTL is exact to the millisecond, swept or not`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        _ = try await fixture.append(fixture.envelope(1, ttl: 1))
        let before = start.adding(milliseconds: 999)
        let after = start.adding(milliseconds: 1000)
        #expect(try await fixture.waiting(at: before).count == 1)
        #expect(try await fixture.waiting(at: after).isEmpty)
        #expect(try await fixture.outcome(1, at: before) == nil)
        #expect(try await fixture.outcome(1, at: after) == .expired)
        let late = Settlement(.acknowledged, at: after)
        #expect(
            try await fixture.store.commit([.settle(fixture.envelope(1).id, device: fixture.device.serial, late)])
                == [.notWaiting])
        _ = try await fixture.store.sweep(at: after, limit: 10)
        #expect(try await fixture.outcome(1, at: after) == .expired)
    }

    @Test func `what was given of TTL 0 and not answered for is dropped when the store is opened again`() async throws {
        let directory = try TemporaryDirectory.make()
        let fixture = try await StoreFixture(try SQLiteStore(directory: directory))
        let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: .never)
        // The fraction of this second that is still to come counts as well.
        let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970) * 1000 + 999)
        _ = try await fixture.append(fixture.envelope(1, ttl: 0, at: now), claim: claim)
        // Elsewhere, so that its time is not what the other is found by.
        _ = try await fixture.append(fixture.envelope(200_000))
        #expect(try await fixture.outcome(1, at: now) == nil)
        try fixture.store.close()
        let store = try SQLiteStore(directory: directory)
        let again = fixture.again(store)
        #expect(try await again.outcome(1, at: now) == .dropped)
        let repeated = try await again.append(again.envelope(300_000, ttl: 0, at: now), claim: claim)
        guard case .duplicate(_, _, _, .dropped) = repeated else {
            Issue.record("a repetition hears something else")
            return
        }
        #expect(try await again.waiting().map(\.position) == [200_000])
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `what expires among neighbours is ended, each of them, about so many at a time`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        let operations = (Int64(1)...300).map { position in
            InboxOperation.append(fixture.envelope(position << 10, ttl: position % 3 == 0 ? 100 : 1), AppendRules())
        }
        _ = try await fixture.store.commit(operations)
        // One that has no neighbours, at a round place.
        _ = try await fixture.append(fixture.envelope(65_536_000, ttl: 1))
        let now = start.adding(seconds: 10)
        var expired: [Int64] = []
        while true {
            let step = try await fixture.store.sweep(at: now, limit: 20)
            #expect(step.expired.count < 100)
            expired += step.expired.map(\.position)
            if step.isDone { break }
        }
        #expect(expired.sorted() == (1...300).filter { $0 % 3 != 0 }.map { $0 << 10 } + [65_536_000])
        #expect(try await fixture.waiting(limit: 300, at: now).count == 100)
    }

    @Test(arguments: StoreKind.allCases)
    func `a page passes over what has expired and was not swept yet`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        for position in Int64(1)...100 {
            _ = try await fixture.append(fixture.envelope(position, ttl: position > 98 ? 60 : 1))
        }
        let now = start.adding(seconds: 10)
        #expect(try await fixture.waiting(limit: 3, at: now).map(\.position) == [99, 100])
        #expect(try await fixture.waiting(limit: 1, at: now).map(\.position) == [99])
        #expect(try await fixture.store.waitingCount(device: fixture.device.serial, at: now) == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `outcomes are forgotten after their time, in steps`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind, .init(outcomeRetentionSeconds: 100))
        // Neighbours are ended together: a step is of so many or a few more.
        let positions = (Int64(1)...5).map { $0 * 100_000 }
        for position in positions { _ = try await fixture.append(fixture.envelope(position, ttl: 1)) }
        let expired = start.adding(seconds: 2)
        let first = try await fixture.store.sweep(at: expired, limit: 3)
        #expect(first.expired.map(\.position) == Array(positions[..<3]))
        #expect(!first.isDone)
        let second = try await fixture.store.sweep(at: expired, limit: 3)
        #expect(second.expired.map(\.position) == Array(positions[3...]))
        #expect(second.isDone)
        #expect(try await fixture.outcome(500_000, at: expired) == .expired)
        let forgotten = start.adding(seconds: 1 + 100)
        while try await !fixture.store.sweep(at: forgotten, limit: 2).isDone {}
        for position in positions {
            #expect(try await fixture.store.record(of: fixture.envelope(position).id, at: forgotten) == nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a topic keeps only the newest, on its own channel`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        #expect(try await fixture.append(fixture.envelope(1), topic: "t") == .stored(replaced: nil))
        #expect(try await fixture.append(fixture.envelope(2, on: fixture.second), topic: "t") == .stored(replaced: nil))
        #expect(try await fixture.append(fixture.envelope(3), topic: "u") == .stored(replaced: nil))
        #expect(try await fixture.append(fixture.envelope(4), topic: "t") == .stored(replaced: fixture.envelope(1).id))
        #expect(try await fixture.waiting().map(\.position) == [2, 3, 4])
        #expect(try await fixture.outcome(1) == .replaced)
        let acknowledge = InboxOperation.settle(
            fixture.envelope(4).id, device: fixture.device.serial, Settlement(.acknowledged, at: start))
        _ = try await fixture.store.commit([acknowledge])
        #expect(try await fixture.append(fixture.envelope(5), topic: "t") == .stored(replaced: nil))
    }

    @Test(arguments: StoreKind.allCases)
    func `an expired message is not replaced but expired`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        _ = try await fixture.append(fixture.envelope(1, ttl: 1), topic: "t")
        let later = start.adding(seconds: 5)
        _ = try await fixture.append(fixture.envelope(2, at: later), topic: "t")
        #expect(try await fixture.outcome(1, at: later) == .expired)
    }

    @Test(arguments: StoreKind.allCases)
    func `a full inbox refuses, and takes again when there is room`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind, .init(envelopes: 2))
        #expect(try await fixture.append(fixture.envelope(1, ttl: 10)) == .stored(replaced: nil))
        #expect(try await fixture.append(fixture.envelope(2)) == .stored(replaced: nil))
        #expect(try await fixture.append(fixture.envelope(3)) == .full)
        #expect(try await fixture.waiting().map(\.position) == [1, 2])
        let later = start.adding(seconds: 11)
        #expect(try await fixture.append(fixture.envelope(4, at: later)) == .stored(replaced: nil))
        #expect(try await fixture.append(fixture.envelope(5, at: later)) == .full)
        _ = try await fixture.store.commit([
            .settle(fixture.envelope(2).id, device: fixture.device.serial, Settlement(.acknowledged, at: later))
        ])
        #expect(try await fixture.append(fixture.envelope(6, at: later)) == .stored(replaced: nil))
    }

    @Test(arguments: StoreKind.allCases)
    func `a replacement finds room in a full inbox, as it makes it no longer`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind, .init(envelopes: 2))
        _ = try await fixture.append(fixture.envelope(1), topic: "t")
        _ = try await fixture.append(fixture.envelope(2))
        #expect(try await fixture.append(fixture.envelope(3), topic: "t") == .stored(replaced: fixture.envelope(1).id))
        #expect(try await fixture.append(fixture.envelope(4), topic: "u") == .full)
        #expect(try await fixture.waiting().map(\.position) == [2, 3])
    }

    @Test(arguments: StoreKind.allCases)
    func `bytes fill an inbox too`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind, .init(bytes: 3000))
        #expect(try await fixture.append(fixture.envelope(1, bytes: 2000)) == .stored(replaced: nil))
        #expect(try await fixture.append(fixture.envelope(2, bytes: 2000)) == .full)
        #expect(try await fixture.append(fixture.envelope(3, bytes: 100)) == .stored(replaced: nil))
    }

    @Test(arguments: StoreKind.allCases)
    func `an idempotency key gives the first answer again, to the same request only`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: start.adding(seconds: 86_400))
        let other = IdempotencyClaim(keyHash: [1], fingerprint: [3], validUntil: start.adding(seconds: 86_400))
        #expect(try await fixture.append(fixture.envelope(1), claim: claim) == .stored(replaced: nil))
        let again = InboxResult.duplicate(
            of: fixture.envelope(1).id, acceptedAt: start, expiresAt: start.adding(seconds: 60), outcome: nil)
        #expect(try await fixture.append(fixture.envelope(2), claim: claim) == again)
        #expect(try await fixture.append(fixture.envelope(3), claim: other) == .keyReused)
        #expect(try await fixture.append(fixture.envelope(4, on: fixture.second), claim: other) == .stored(replaced: nil))
        #expect(try await fixture.waiting().map(\.position) == [1, 4])
        let nextDay = start.adding(seconds: 86_400)
        #expect(try await fixture.append(fixture.envelope(5, at: nextDay), claim: other) == .stored(replaced: nil))
    }

    @Test(arguments: StoreKind.allCases)
    func `a refused message leaves its idempotency key free`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind, .init(envelopes: 1))
        _ = try await fixture.append(fixture.envelope(1))
        let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: start.adding(seconds: 86_400))
        #expect(try await fixture.append(fixture.envelope(2), claim: claim) == .full)
        _ = try await fixture.store.commit([
            .settle(fixture.envelope(1).id, device: fixture.device.serial, Settlement(.acknowledged, at: start))
        ])
        #expect(try await fixture.append(fixture.envelope(3), claim: claim) == .stored(replaced: nil))
    }

    @Test(arguments: StoreKind.allCases)
    func `a closed channel takes nothing, and its messages end as gone`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        _ = try await fixture.append(fixture.envelope(1))
        _ = try await fixture.append(fixture.envelope(2, on: fixture.second))
        #expect(
            try await fixture.store.closeChannel(fixture.first.id, device: fixture.device.serial, at: start)
                == fixture.first.serial)
        #expect(try await fixture.append(fixture.envelope(3)) == .originGone)
        #expect(try await fixture.outcome(1) == .gone)
        #expect(try await fixture.waiting().map(\.position) == [2])
        let again = try await StoreFixture.open(1, of: fixture.device, in: fixture.store)
        #expect(again.serial != fixture.first.serial)
        #expect(try await fixture.append(fixture.envelope(4)) == .originGone)
    }

    @Test(arguments: StoreKind.allCases)
    func `an event closes its channel and waits until the device has heard it`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        _ = try await fixture.append(fixture.envelope(1))
        var event = fixture.envelope(2)
        event.kind = .channelError(code: 503)
        event.expiresAt = .never
        #expect(try await fixture.append(event) == .stored(replaced: nil))
        #expect(try await fixture.store.channel(fixture.first.serial) == nil)
        #expect(try await fixture.outcome(1) == .gone)
        #expect(try await fixture.waiting(at: start.adding(seconds: 99_999_999)) == [event])
        event = fixture.envelope(3)
        event.kind = .channelClosed
        #expect(try await fixture.append(event) == .originGone)
    }

    @Test(arguments: StoreKind.allCases)
    func `a message of TTL 0 never waits, and its outcome is what the device said, or dropped`(kind: StoreKind) async throws
    {
        let fixture = try await StoreFixture(kind)
        for position in 1...2 { _ = try await fixture.append(fixture.envelope(Int64(position), ttl: 0, bytes: 0)) }
        #expect(try await fixture.waiting().isEmpty)
        #expect(try await fixture.outcome(1) == nil)
        _ = try await fixture.store.commit([
            .settle(fixture.envelope(1).id, device: fixture.device.serial, Settlement(.acknowledged, code: 100, at: start))
        ])
        let later = start.adding(seconds: 61)
        #expect(try await fixture.outcome(1, at: later) == .acknowledged)
        #expect(try await fixture.outcome(2, at: later) == .dropped)
        _ = try await fixture.store.sweep(at: later, limit: 10)
        #expect(try await fixture.outcome(2, at: later) == .dropped)
    }

    @Test(arguments: StoreKind.allCases)
    func `deleting a device or an app takes its inbox with it, and leaves the outcomes`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        _ = try await fixture.append(fixture.envelope(1))
        let removed = try #require(try await fixture.store.deleteDevice(fixture.device.serial, at: start))
        #expect(removed.devices == [fixture.device.serial])
        #expect(Set(removed.channels) == [fixture.first.serial, fixture.second.serial])
        #expect(try await fixture.outcome(1) == .gone)
        #expect(try await fixture.append(fixture.envelope(2)) == .originGone)
        #expect(try await fixture.store.deleteDevice(fixture.device.serial, at: start) == nil)
        #expect(try await fixture.store.deleteApp(try StoreFixture.appID, at: start))
        #expect(try await !fixture.store.deleteApp(try StoreFixture.appID, at: start))
    }

    @Test(arguments: StoreKind.allCases)
    func `concurrent commits are all done, each once`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        await withThrowingTaskGroup(of: Void.self) { group in
            for position in 1...300 {
                group.addTask { _ = try await fixture.append(fixture.envelope(Int64(position))) }
            }
        }
        #expect(try await fixture.waiting(limit: 1000).map(\.position) == (1...300).map(Int64.init))
    }

    // MARK: Origins and shared bodies

    @Test(arguments: StoreKind.allCases)
    func `an envelope of the device itself ends with no channel`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        var envelope = fixture.envelope(1)
        envelope.origin = .device(fixture.device.serial)
        #expect(try await fixture.append(envelope) == .stored(replaced: nil))
        for channel in [fixture.first, fixture.second] {
            _ = try await fixture.store.closeChannel(channel.id, device: fixture.device.serial, at: start)
        }
        #expect(try await fixture.waiting() == [envelope])
        _ = try await fixture.store.deleteDevice(fixture.device.serial, at: start)
        #expect(try await fixture.outcome(1) == .gone)
        var late = fixture.envelope(2)
        late.origin = envelope.origin
        #expect(try await fixture.append(late) == .originGone)
    }

    @Test(arguments: StoreKind.allCases)
    func `one topic of two origins is two topics`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        var own = fixture.envelope(2)
        own.origin = .device(fixture.device.serial)
        _ = try await fixture.append(fixture.envelope(1), topic: "a")
        #expect(try await fixture.append(own, topic: "a") == .stored(replaced: nil))
        #expect(try await fixture.waiting().map(\.origin.kind) == [.channel, .device])
    }

    private func pointing(_ envelope: Envelope, to content: SharedContentID, _ body: [UInt8]) -> Envelope {
        var envelope = envelope
        envelope.kind = .message(.init(body: body, coding: ContentCoding(.identity), shared: content))
        return envelope
    }

    @Test(arguments: StoreKind.allCases)
    func `a body that many point to is given to each, counts for each, and goes with the last of them`(
        kind: StoreKind
    ) async throws {
        let body = Array(repeating: UInt8(7), count: 1000)
        let fixture = try await StoreFixture(kind, .init(bytes: 2 * (Envelope.overhead + 1000)))
        let content = try await fixture.store.addContent(body)
        let envelopes = [
            pointing(fixture.envelope(1), to: content, body),
            pointing(fixture.envelope(2, on: fixture.second), to: content, body),
        ]
        for envelope in envelopes { #expect(try await fixture.append(envelope) == .stored(replaced: nil)) }
        #expect(try await fixture.waiting() == envelopes)
        #expect(try await fixture.append(pointing(fixture.envelope(3), to: content, body)) == .full)
        try await fixture.store.releaseContent(content)
        _ = try await fixture.store.sweep(at: start, limit: 10)
        #expect(try await fixture.waiting() == envelopes)
        for envelope in envelopes {
            let settle = InboxOperation.settle(
                envelope.id, device: fixture.device.serial, Settlement(.acknowledged, at: start))
            #expect(try await fixture.store.commit([settle]) == [.settled])
        }
        _ = try await fixture.store.sweep(at: start, limit: 10)
        let late = try await fixture.store.commit([
            .append(pointing(fixture.envelope(4), to: content, body), AppendRules()),
            .append(fixture.envelope(5), AppendRules()),
        ])
        guard case .failed = late[0] else {
            Issue.record("a body that is gone can be pointed to")
            return
        }
        #expect(late[1] == .stored(replaced: nil))
    }

    @Test(arguments: StoreKind.allCases)
    func `a body that is not released stays without anyone who points to it`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        let content = try await fixture.store.addContent([1, 2, 3])
        _ = try await fixture.store.sweep(at: start, limit: 10)
        let envelope = pointing(fixture.envelope(1), to: content, [1, 2, 3])
        #expect(try await fixture.append(envelope) == .stored(replaced: nil))
        #expect(try await fixture.waiting() == [envelope])
    }

    // MARK: Batches

    @Test(arguments: StoreKind.allCases)
    func `what happens within one batch is written as what is left of it`(kind: StoreKind) async throws {
        let fixture = try await StoreFixture(kind)
        let device = fixture.device.serial
        let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: start.adding(seconds: 100))
        let results = try await fixture.store.commit([
            .append(fixture.envelope(1), AppendRules(topic: "a")),
            .append(fixture.envelope(2), AppendRules(topic: "a", idempotency: claim)),
            .append(fixture.envelope(3), AppendRules(idempotency: claim)),
            .settle(fixture.envelope(2).id, device: device, Settlement(.acknowledged, at: start)),
            .settle(fixture.envelope(2).id, device: device, Settlement(.failed, code: 301, at: start)),
            .append(fixture.envelope(4, on: fixture.second), AppendRules()),
            .end(DeviceOrigin(device, fixture.second.origin.key), because: .unregistered, at: start),
            .append(fixture.envelope(5, on: fixture.second), AppendRules()),
            .append(fixture.envelope(6), AppendRules()),
        ])
        #expect(
            results == [
                .stored(replaced: nil), .stored(replaced: fixture.envelope(1).id),
                .duplicate(
                    of: fixture.envelope(2).id, acceptedAt: start, expiresAt: start.adding(seconds: 60), outcome: nil),
                .settled, .notWaiting, .stored(replaced: nil), .settled, .originGone, .stored(replaced: nil),
            ])
        #expect(try await fixture.waiting().map(\.position) == [6])
        #expect(try await fixture.outcome(1) == .replaced)
        #expect(
            try await fixture.store.record(of: fixture.envelope(2).id, at: start)?.settlement
                == Settlement(.acknowledged, code: 301, at: start))
        #expect(try await fixture.outcome(4) == .gone)
        #expect(try await fixture.store.channel(fixture.second.serial) == nil)
    }
}
