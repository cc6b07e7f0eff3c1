import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// Connections of a device that moves from one home to another.
@Suite(.timeLimit(.minutes(5)))
struct MovedConnectionTests {
    /// Whether each text is in another one once, in order.
    private func isOnceInOrder(_ parts: [String], in text: String) -> Bool {
        let places = parts.map { text.ranges(of: $0).map(\.lowerBound) }
        guard places.allSatisfy({ $0.count == 1 }) else { return false }
        let order = places.flatMap { $0 }
        return order == order.sorted()
    }

    /// Sends messages one after the other, while the device moves to and fro.
    private func sendDuringMoves(
        _ count: Int, to phone: TwoHomes.Phone, in world: TwoHomes
    ) async throws -> [MessageID] {
        async let sent = send(count, to: phone, in: world)
        for _ in 0..<6 { try await world.move(phone.shard) }
        return try await sent
    }

    private func send(_ count: Int, to phone: TwoHomes.Phone, in world: TwoHomes) async throws -> [MessageID] {
        var ids: [MessageID] = []
        for _ in 0..<count { ids.append(try await world.send(to: phone)) }
        return ids
    }

    // MARK: Sockets

    private func connect(_ phone: TwoHomes.Phone, at door: SocketClient) async throws -> RawPeer {
        let peer = try RawPeer(port: door.port)
        try peer.sendFrame(#"{"messageType":"hello","carillon":1,"credential":"\#(phone.credential)"}"#)
        _ = try await peer.read(until: "caughtUp")
        return peer
    }

    @Test func `a socket stays open, and gets the messages from before, during and after moves once, in order`() async throws
    {
        let world = try await TwoHomes(clock: nil)
        let (door, phone) = (try await SocketClient(world), try await world.phone())
        let peer = try await connect(phone, at: door)
        var ids = try await send(2, to: phone, in: world)
        ids += try await sendDuringMoves(30, to: phone, in: world)
        let last = try await world.send(to: phone)
        let text = try await peer.read(until: last.description)
        #expect(isOnceInOrder((ids + [last]).map(\.description), in: text), "\(text)")
        #expect(world.domain(of: phone.device).runtime.isConnected(phone.device.serial))
        // Also the TTL of 0 is for a connection.
        let receipt = try await world.domain(of: phone.device).publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 0), to: phone.channel)
        #expect(receipt.outcome == nil)
        try await door.close()
    }

    @Test func `a message that is withdrawn before a socket has arrived at the new home is not delivered`() async throws {
        let world = try await TwoHomes(clock: nil)
        let (door, phone) = (try await SocketClient(world), try await world.phone())
        let peer = try await connect(phone, at: door)
        let ids = Mutex<[MessageID]>([])
        for link in world.links {
            link.beforeArrival {
                do {
                    let withdrawn = try await world.send(to: phone)
                    let home = world.domain(of: phone.device).runtime
                    let isWithdrawn = try await home.cancel(withdrawn, of: phone.device.serial)
                    #expect(isWithdrawn)
                    let kept = try await world.send(to: phone)
                    ids.withLock { $0 = [withdrawn, kept] }
                } catch {
                    Issue.record(error)
                }
            }
        }
        try await world.move(phone.shard)
        try await eventually { ids.withLock { $0.count } == 2 }
        let (withdrawn, kept) = ids.withLock { ($0[0], $0[1]) }
        let text = try await peer.read(until: kept.description)
        #expect(!text.contains(withdrawn.description))
        try await door.close()
    }

    @Test func `a newer socket that connects before an older one has arrived at the new home stays`() async throws {
        let world = try await TwoHomes(clock: nil)
        let (door, phone) = (try await SocketClient(world), try await world.phone())
        let older = try await connect(phone, at: door)
        let newer = Mutex<RawPeer?>(nil)
        for link in world.links {
            link.beforeArrival {
                do {
                    let peer = try await connect(phone, at: door)
                    newer.withLock { $0 = peer }
                } catch {
                    Issue.record(error)
                }
            }
        }
        try await world.move(phone.shard)
        let text = await older.readToEnd()
        #expect(text.contains("replaced: the device opened a newer connection"))
        let id = try await world.send(to: phone)
        let peer = newer.withLock { $0 }
        _ = try await peer?.read(until: id.description)
        #expect(world.domain(of: phone.device).runtime.isConnected(phone.device.serial))
        try await door.close()
    }

    @Test func `a socket that ends while its device moves leaves no session`() async throws {
        let world = try await TwoHomes(clock: nil)
        let (door, phone) = (try await SocketClient(world), try await world.phone())
        let peer = try await connect(phone, at: door)
        let mayArrive = Mutex(false)
        for link in world.links {
            link.beforeArrival { _ = try? await eventually { mayArrive.withLock { $0 } } }
        }
        try await world.move(phone.shard)
        try peer.sendFrame(0x8)
        _ = await peer.readToEnd()
        mayArrive.withLock { $0 = true }
        try await eventually { world.domains.allSatisfy { $0.runtime.population == (0, 0) } }
        try await door.close()
    }

    // MARK: Event streams

    private func feed(of phone: TwoHomes.Phone, in world: TwoHomes) -> InboxFeed {
        let domain = world.domains[0]
        return InboxFeed(
            of: phone.device, homes: world.homes, time: domain.time, limits: .init(), logger: domain.logger)
    }

    /// Keeps the text that is written to it.
    private final class Peer: ResponseBodyWriter, Sendable {
        private let state = Mutex("")
        var text: String { state.withLock { $0 } }
        func write(_ buffer: ByteBuffer) { state.withLock { $0 += String(buffer: buffer) } }
        func finish(_ trailingHeaders: HTTPFields?) {}
    }

    @Test func `an event stream gets the messages from before, during and after moves once, in order`() async throws {
        let world = try await TwoHomes(clock: nil)
        let phone = try await world.phone()
        let (feed, peer) = (feed(of: phone, in: world), Peer())
        let stream = InboxStream(feed: feed, readiness: Readiness(), time: world.domains[0].time)
        // Ends with the feed.
        let task = Task {
            var writer: any ResponseBodyWriter = peer
            try await stream.run(&writer)
        }
        try await eventually { peer.text.contains("event: caughtUp") }
        var ids = try await send(2, to: phone, in: world)
        ids += try await sendDuringMoves(30, to: phone, in: world)
        ids.append(try await world.send(to: phone))
        let events = ids.map { "id: \($0)\n" }
        try await eventually { events.allSatisfy { peer.text.contains($0) } }
        #expect(isOnceInOrder(events, in: peer.text), "\(peer.text)")
        feed.end(because: .serverStops)
        try await task.value
        #expect(world.domains.allSatisfy { $0.runtime.population == (0, 0) })
    }

    /// The envelopes that a feed delivers.
    private struct Envelopes {
        var batches: AsyncStream<InboxFeed.Batch>.Iterator
        var waiting: [Envelope] = []

        mutating func next() async -> Envelope? {
            while waiting.isEmpty {
                guard let batch = await batches.next(isolation: #isolation) else { return nil }
                waiting = batch.items.compactMap { if case .envelope(let envelope) = $0 { envelope } else { nil } }
            }
            return waiting.removeFirst()
        }
    }

    @Test(arguments: [true, false])
    func `an envelope that a stream has not written is read again, and not delivered if it was withdrawn`(
        isWithdrawn: Bool
    ) async throws {
        let world = try await TwoHomes(clock: nil)
        let phone = try await world.phone()
        let feed = feed(of: phone, in: world)
        await feed.begin()
        defer { feed.finish() }
        var envelopes = Envelopes(batches: feed.batches.makeAsyncIterator())
        let (written, unwritten) = (try await world.send(to: phone), try await world.send(to: phone))
        let first = try #require(await envelopes.next())
        #expect(first.id == written && feed.isWanted(first))
        feed.done(with: first)
        for link in world.links where isWithdrawn {
            link.beforeArrival {
                do {
                    let home = world.domain(of: phone.device).runtime
                    let isCancelled = try await home.cancel(unwritten, of: phone.device.serial)
                    #expect(isCancelled)
                } catch {
                    Issue.record(error)
                }
            }
        }
        try await world.move(phone.shard)
        let last = try await world.send(to: phone)
        var wanted: [MessageID] = []
        while wanted.last != last {
            let envelope = try #require(await envelopes.next())
            if feed.isWanted(envelope) { wanted.append(envelope.id) }
            feed.done(with: envelope)
        }
        #expect(wanted == (isWithdrawn ? [last] : [unwritten, last]))
    }

    @Test func `a stream leaves the new home of its device, also if the answer of the former home was lost`() async throws {
        let world = try await TwoHomes(clock: nil)
        let phone = try await world.phone()
        let feed = feed(of: phone, in: world)
        let (former, taker) = (world.place(of: phone.shard), world.domains[1 - world.place(of: phone.shard)])
        world.links[former].loseArrival {
            do {
                try await world.move(phone.shard)
                try await eventually { taker.runtime.population.sessions == 1 }
                // The stream gets the answer of the new home.
                try await Task.sleep(for: .milliseconds(50))
            } catch {
                Issue.record(error)
            }
        }
        await feed.begin()
        #expect(taker.runtime.population.sessions == 1)
        feed.finish()
        #expect(world.domains.allSatisfy { $0.runtime.population == (0, 0) })
    }

    // MARK: Polls

    private func poll(_ phone: TwoHomes.Phone, at domain: HomeDomain, _ news: Signal) -> WaitingPoll {
        let poll = WaitingPoll(of: phone.device.serial, at: domain.home, waitSeconds: 60, isHead: false)
        poll.wait { isLast in isLast ? Response(status: .ok) : nil }
        poll.onChange { news.send() }
        return poll
    }

    @Test func `a waiting poll ends with a move, and the next one waits at the new home`() async throws {
        let world = try await TwoHomes(clock: nil)
        let (phone, news) = (try await world.phone(), Signal())
        let former = world.domain(of: phone.device)
        let first = poll(phone, at: former, news)
        try await world.move(phone.shard)
        await news.wait()
        let answer = try await first.look(isLast: false)
        #expect(answer?.status == .ok)
        // A poll that was on its way to the former home.
        let late = poll(phone, at: former, news)
        await news.wait()
        let lateAnswer = try await late.look(isLast: false)
        #expect(lateAnswer?.status == .ok)
        #expect(former.runtime.population == (0, 0))
        let next = poll(phone, at: world.domain(of: phone.device), news)
        _ = try await world.send(to: phone)
        await news.wait()
        next.end()
        #expect(world.domains.allSatisfy { $0.runtime.population == (0, 0) })
    }
}
