import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import Synchronization
import TestStores
import Testing

@testable import CarillonSQLite

/// The publisher and the inbox over a real store.
@Suite(.timeLimit(.minutes(5)))
struct PublisherTests {
    private func rows(_ world: DeliveryWorld) async throws -> Int {
        await world.writer.flush()
        return try await world.fixture.sqlite.read {
            try Int.fetchOne($0, sql: "SELECT (SELECT count(*) FROM envelope) + (SELECT count(*) FROM outcome)") ?? 0
        }
    }

    private func join(_ world: DeliveryWorld, limits: DeliveryMachine.Limits = .init()) async throws -> WindowedSession {
        let session = WindowedSession(
            device: world.fixture.device.serial, inbox: world.inbox, clock: world.clock, limits: limits)
        world.sessions.join(session, device: world.fixture.device.serial)
        try await session.load()
        return session
    }

    // MARK: TTL 0

    @Test func `a message of TTL 0 for an absent device is dropped, and costs no row`() async throws {
        let world = try await DeliveryWorld.make()
        for _ in 0..<100 {
            #expect(try await world.publish(world.request(ttl: 0)).outcome == .dropped)
        }
        #expect(try await rows(world) == 0)
    }

    @Test func `a delivered message has the outcome that the device reports`() async throws {
        let world = try await DeliveryWorld.make()
        let session = try await join(world)
        let receipt = try await world.publish(world.request(ttl: 0))
        #expect(receipt.outcome == nil)
        #expect(session.takeGiven().map(\.id) == [receipt.id])
        world.inbox.finish(receipt.id, device: session.device, .acknowledged, code: nil)
        #expect(try await world.outcome(receipt.id) == .acknowledged)
    }

    @Test func `the body of a delivered message is not written`() async throws {
        let world = try await DeliveryWorld.make()
        _ = try await join(world)
        #expect(try await world.publish(world.request(ttl: 0)).outcome == nil)
        #expect(try await rows(world) == 1)
        let bytes = try await world.fixture.sqlite.read {
            try Int.fetchOne($0, sql: "SELECT sum(length(body)) FROM envelope")
        }
        #expect(bytes == 0)
    }

    @Test func `a list of the inbox shows offered messages that are not written yet`() async throws {
        let world = try await DeliveryWorld.make()
        let watching = RecordedWithdrawals(of: world.fixture.device.serial)
        let device = world.fixture.device.serial
        world.sessions.join(watching, device: device)
        async let receipt = world.publish(world.request())
        let offered = await watching.offered()
        let read = try await world.inbox.waiting(device: device, .init(after: 0, limit: 9, bytes: 9999))
        guard case .page(let page) = read else {
            Issue.record("the device is gone")
            return
        }
        #expect(page.envelopes.map(\.id) == [offered.id])
        #expect(try await receipt.outcome == nil)
    }

    @Test func `a message that does not fit is dropped, and is a replacement all the same`() async throws {
        let world = try await DeliveryWorld.make()
        let waiting = try await world.publish(world.request(topic: "a"))
        let dropped = try await world.publish(world.request(ttl: 0, topic: "a"))
        #expect(dropped.outcome == .dropped)
        #expect(try await world.outcome(waiting.id) == .replaced)
        #expect(try await rows(world) == 1)
    }

    @Test func `with a key, a repetition is informed that the message was dropped`() async throws {
        let world = try await DeliveryWorld.make()
        let first = try await world.publish(world.request(ttl: 0, key: "k"))
        let again = try await world.publish(world.request(ttl: 0, key: "k"))
        #expect(first.outcome == .dropped)
        #expect(again == first)
    }

    // MARK: Live

    @Test func `an acknowledgement that overtakes the write answers the sender, and the replaced message is not delivered`()
        async throws
    {
        let world = try await DeliveryWorld.make()
        let old = try await world.publish(world.request(topic: "a"))
        // A load that is under way has read it.
        let session = WindowedSession(device: world.fixture.device.serial, inbox: world.inbox, clock: world.clock)
        world.sessions.join(session, device: session.device)
        let watching = RecordedWithdrawals(of: world.fixture.device.serial)
        world.sessions.join(watching, device: session.device)
        async let receipt = world.publish(world.request(topic: "a", body: "new"))
        let offered = await watching.offered()
        world.inbox.finish(offered.id, device: session.device, .acknowledged, code: nil)
        #expect(try await receipt.outcome == .acknowledged)
        await world.writer.flush()
        #expect(watching.withdrawn == [.envelope(old.id.position)])
        #expect(try await world.outcome(old.id) == .replaced)
        #expect(try await world.outcome(offered.id) == .acknowledged)
    }

    @Test func `when a replacement is answered, the earlier message cannot be delivered any more`() async throws {
        let world = try await DeliveryWorld.make()
        let first = try await world.publish(world.request(topic: "a"))
        let watching = RecordedWithdrawals(of: world.fixture.device.serial)
        world.sessions.join(watching, device: world.fixture.device.serial)
        async let second = world.publish(world.request(topic: "a"))
        _ = await watching.offered()
        for _ in 0..<3 { world.timers.fire() }
        _ = try await second
        #expect(watching.withdrawn == [.envelope(first.id.position)])
    }

    @Test func `a cancelled message is withdrawn before its sender is informed`() async throws {
        let world = try await DeliveryWorld.make()
        let receipt = try await world.publish(world.request())
        let watching = RecordedWithdrawals(of: world.fixture.device.serial)
        world.sessions.join(watching, device: world.fixture.device.serial)
        #expect(try await world.inbox.cancel(receipt.id))
        #expect(watching.withdrawn == [.envelope(receipt.id.position)])
        #expect(try await !world.inbox.cancel(receipt.id))
    }

    // MARK: Refusals

    @Test func `beyond its rate a channel is refused, and nothing is stored`() async throws {
        let world = try await DeliveryWorld(try await StoreFixture(.memory)) {
            $0.channelMessages = Rate(perSecond: 1, burst: 2)
        }
        for _ in 0..<2 { _ = try await world.publish(world.request()) }
        for ttl in [0, 60] as [Int64] {
            await #expect { _ = try await world.publish(world.request(ttl: ttl)) } throws: {
                ($0 as? Refusal)?.code == .rateLimited && ($0 as? Refusal)?.retryAfterSeconds == 2
            }
        }
        #expect(try await rows(world) == 2)
        world.clock.advance(seconds: 2)
        _ = try await world.publish(world.request())
    }

    @Test func `when too much is queued for the disk, the sender gets an error, and the queued messages are stored`()
        async throws
    {
        let world = try await DeliveryWorld(try await StoreFixture(.memory), limits: .init(entries: 3))
        let watching = RecordedWithdrawals(of: world.fixture.device.serial)
        world.sessions.join(watching, device: world.fixture.device.serial)
        let answers = AsyncStream.makeStream(of: Bool.self)
        for _ in 0..<5 {
            world.publisher.publish(world.request(), to: world.fixture.first) { result in
                if case .success = result { answers.continuation.yield(true) } else { answers.continuation.yield(false) }
            }
        }
        // A message that was offered to a live device waits for its answer for a moment.
        while true {
            world.timers.fire()
            if try await world.fixture.store.waitingCount(device: watching.device, at: world.clock.now) == 3 { break }
        }
        var seen: [Bool] = []
        for await answer in answers.stream {
            seen.append(answer)
            if seen.count == 5 { break }
        }
        #expect(seen.count { $0 } == 3)
    }

    @Test func `the inbox of a deleted device reports the deletion`() async throws {
        let world = try await DeliveryWorld.make()
        let device = world.fixture.device.serial
        _ = try await world.publish(world.request())
        #expect(try await world.inbox.waiting(device: device, .init(after: 0, limit: 9, bytes: 9999)) != .deviceGone)
        _ = try await world.fixture.store.deleteDevice(device, at: world.clock.now)
        #expect(try await world.inbox.waiting(device: device, .init(after: 0, limit: 9, bytes: 9999)) == .deviceGone)
    }
}

/// A session that receives offers, and stores the withdrawals.
private final class RecordedWithdrawals: LiveSession {
    private let notes = MutexBox()
    private let offers = AsyncStream.makeStream(of: Envelope.self)
    let device: DeviceSerial

    init(of device: DeviceSerial) { self.device = device }

    var withdrawn: [DeliveryMachine.Withdrawal] { notes.value }

    func offered() async -> Envelope {
        for await envelope in offers.stream { return envelope }
        preconditionFailure("the stream does not end")
    }

    func offer(_ envelope: Envelope) { offers.continuation.yield(envelope) }
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
    func storedMore() {}
    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        notes.append(withdrawal)
        done()
    }
    func finished(_ ids: [MessageID]) {}
    func end(because reason: SessionEnd) {}
}

private final class MutexBox: Sendable {
    private let values = Mutex<[DeliveryMachine.Withdrawal]>([])
    var value: [DeliveryMachine.Withdrawal] { values.withLock { $0 } }
    func append(_ item: DeliveryMachine.Withdrawal) { values.withLock { $0.append(item) } }
}
