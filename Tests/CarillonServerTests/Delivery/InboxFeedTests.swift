import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import Testing

@testable import CarillonServer

/// The event stream's side of an inbox, over a real core.
@Suite(.timeLimit(.minutes(5)))
struct InboxFeedTests {
    private struct World {
        let domain: HomeDomain
        let device: Device
        let channel: PushChannel
        let credential: String

        init(_ fixture: RouteFixture) async throws {
            domain = fixture.domain
            let app = try AppID.checked("com.example.app")
            _ = try await domain.apps.create(app)
            let registered = try await domain.devices.register(app: app)
            device = registered.device
            credential = registered.credential.text
            var random = SystemRandomNumberGenerator()
            channel = try await domain.channels.register(
                .random(using: &random), device: device.serial, name: nil, vapidKey: nil
            ).channel
        }

        func send(ttl: Int64 = 60, topic: String? = nil, bytes: Int = 5) async throws -> PublishReceipt {
            let body = Array(repeating: UInt8(ascii: "x"), count: bytes)
            return try await domain.publisher.publish(
                PublishRequest(body: body, coding: ContentCoding(.identity), ttl: ttl, topic: topic), to: channel)
        }

        func envelope(ttl: Int64) -> Envelope {
            let now = domain.time.now()
            return Envelope(
                id: MessageID(position: 1 << 40, secret: Bytes16(high: 1, low: 1)), device: device.serial, app: device.app,
                origin: channel.origin,
                kind: .message(.init(body: [1], coding: nil)), acceptedAt: now,
                expiresAt: now.adding(seconds: ttl))
        }

        func stream(_ limits: DeliveryMachine.Limits = .init()) async -> (InboxFeed, Items) {
            let stream = feed(at: domain.homes, limits)
            await stream.begin()
            return (stream, Items(batches: stream.batches.makeAsyncIterator()))
        }

        func homes(by link: DelayedHome) -> Homes {
            Homes(only: domain.runtime, reachedBy: link.connected(to: domain.runtime))
        }

        func feed(at homes: Homes, _ limits: DeliveryMachine.Limits = .init()) -> InboxFeed {
            InboxFeed(of: device, homes: homes, time: domain.time, limits: limits, logger: domain.logger)
        }
    }

    /// The entries of a feed, one by one.
    private struct Items {
        var batches: AsyncStream<InboxFeed.Batch>.Iterator
        var items: [InboxFeed.Item] = []

        mutating func next() async -> InboxFeed.Item? {
            while items.isEmpty {
                guard let batch = await batches.next(isolation: #isolation) else { return nil }
                items = batch.items
            }
            return items.removeFirst()
        }
    }

    private func envelope(_ item: InboxFeed.Item?) -> Envelope? {
        if case .envelope(let envelope)? = item { envelope } else { nil }
    }

    private func isCaughtUp(_ item: InboxFeed.Item?) -> Bool {
        if case .caughtUp? = item { true } else { false }
    }

    @Test func `results that come by HTTP open the window again`() async throws {
        let fixture = try await RouteFixture()
        let world = try await World(fixture)
        let ids = [try await world.send().id, try await world.send().id, try await world.send().id]
        var (stream, items) = await world.stream(.init(envelopes: 1, bytes: 10_000))
        defer { stream.finish() }
        for id in ids {
            #expect(envelope(await items.next())?.id == id)
            let body = #"{"results":[{"version":"\#(id)","result":"acknowledged"}]}"#
            #expect(try await fixture.request(.post, "/v1/inbox/results", key: world.credential, body).status == 204)
        }
        #expect(isCaughtUp(await items.next()))
    }

    @Test func `a message of TTL 0 on a stream that ends is dropped`() async throws {
        let world = try await World(try await RouteFixture())
        var (stream, items) = await world.stream()
        #expect(isCaughtUp(await items.next()))
        let receipt = try await world.send(ttl: 0)
        #expect(receipt.outcome == nil)
        stream.finish()
        #expect(try await world.domain.runtime.inbox.record(of: receipt.id)?.finalOutcome?.outcome == .dropped)
        #expect(try await world.send(ttl: 0).outcome == .dropped)
        // A message that is offered while it ends.
        let wasAccepted = await withCheckedContinuation { continuation in
            stream.offerVolatile(world.envelope(ttl: 0)) { continuation.resume(returning: $0) }
        }
        #expect(!wasAccepted)
    }

    @Test func `a message that expired, or was replaced, in the stream's buffer is not sent any more`() async throws {
        let world = try await World(try await RouteFixture())
        var (stream, items) = await world.stream()
        defer { stream.finish() }
        #expect(isCaughtUp(await items.next()))
        let expiring = try await world.send(ttl: 1)
        let replaced = try await world.send(topic: "a")
        let newest = try await world.send(topic: "a")
        while try await world.domain.runtime.inbox.record(of: expiring.id)?.finalOutcome == nil {}
        var wanted: [MessageID] = []
        for expected in [expiring, replaced, newest] {
            let envelope = try #require(envelope(await items.next()))
            #expect(envelope.id == expected.id)
            if stream.isWanted(envelope) { wanted.append(expected.id) }
        }
        #expect(wanted == [newest.id])
    }

    @Test func `data that waits to be written pauses the window, and writing it opens it`() async throws {
        let world = try await World(try await RouteFixture())
        var (stream, items) = await world.stream(.init(envelopes: 100, bytes: 1 << 20, outputBytes: 5000))
        defer { stream.finish() }
        #expect(isCaughtUp(await items.next()))
        // Each except the first few waits in the store, where the next one replaces it.
        var last: MessageID?
        for _ in 0..<50 { last = try await world.send(topic: "a", bytes: 2000).id }
        var given = 0
        while let envelope = envelope(await items.next()) {
            given += 1
            stream.done(with: envelope)
            if envelope.id == last { break }
        }
        #expect(given <= 6)
    }

    @Test func `a stream of a device that was deleted before it joined ends`() async throws {
        let world = try await World(try await RouteFixture())
        try await world.domain.devices.delete(world.device)
        var (stream, items) = await world.stream()
        defer { stream.finish() }
        guard case .ended(.deviceGone)? = await items.next() else {
            Issue.record("it believes itself live")
            return
        }
        #expect(await items.next() == nil)
    }

    @Test func `a stream of a device whose credential was renewed before it joined ends, and replaces no connection`()
        async throws
    {
        let world = try await World(try await RouteFixture())
        try await world.domain.devices.renewCredential(
            of: world.device, secret: String(repeating: "A", count: 32), from: nil)
        var (stream, items) = await world.stream()
        defer { stream.finish() }
        #expect(world.domain.runtime.sessions.population == (0, 0))
        guard case .ended(.deviceGone)? = await items.next() else {
            Issue.record("the stream goes on")
            return
        }
    }

    // MARK: Homes that answer late

    @Test func `messages that are offered before a stream has arrived come behind the earlier ones`() async throws {
        let world = try await World(try await RouteFixture())
        let link = DelayedHome()
        let stream = world.feed(at: world.homes(by: link))
        defer { stream.finish() }
        var ids = [try await world.send().id]
        link.next(.answeredLate)
        async let begun: Void = stream.begin()
        await link.hasReached()
        for _ in 0..<3 { ids.append(try await world.send().id) }
        #expect(try await world.send(ttl: 0).outcome == .dropped)
        link.release()
        await begun
        var items = Items(batches: stream.batches.makeAsyncIterator())
        for id in ids { #expect(envelope(await items.next())?.id == id) }
        #expect(isCaughtUp(await items.next()))
        #expect(try await world.send(ttl: 0).outcome == nil)
    }

    @Test(arguments: [DelayedHome.Course.answerLost, .calledLate])
    func `a stream whose arrival has an unknown outcome fails, and leaves no session`(
        course: DelayedHome.Course
    ) async throws {
        let world = try await World(try await RouteFixture())
        let link = DelayedHome()
        let stream = world.feed(at: world.homes(by: link))
        link.next(course)
        await stream.begin()
        var items = Items(batches: stream.batches.makeAsyncIterator())
        guard case .failed? = await items.next() else {
            Issue.record("the stream goes on")
            return
        }
        #expect(await items.next() == nil)
        stream.finish()
        link.release()
        await link.hasLeft()
        #expect(link.connections == 1 && link.leaves == 1)
        #expect(world.domain.runtime.sessions.population == (0, 0))
        #expect(try await world.send(ttl: 0).outcome == .dropped)
    }

    @Test func `deleting a device ends a poll that waits, with 401`() async throws {
        let fixture = try await RouteFixture()
        let world = try await World(fixture)
        async let polled = fixture.request(.get, "/v1/inbox?wait=60", key: world.credential)
        // The poll waits when it is registered for calls.
        while !world.domain.runtime.sessions.hasWaiters(world.device.serial) { await Task.yield() }
        try await world.domain.devices.delete(world.device)
        let answer = try await polled
        #expect(answer.status == 401)
        #expect(answer.code == "credential_invalid")
    }
}
