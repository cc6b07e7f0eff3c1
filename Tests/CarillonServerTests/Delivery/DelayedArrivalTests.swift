import CarillonCore
import CarillonWire
import Testing

@testable import CarillonServer

/// Sockets of a real server whose home answers late, or not at all.
@Suite(.timeLimit(.minutes(5)))
struct DelayedArrivalTests {
    private static let comesBack = "storage_unavailable: connect again later"

    /// A server, and the link of its connections to the home.
    private struct World: Sendable {
        let server: WatchedServer
        let link: DelayedHome
        var sessions: LiveSessions { server.domain.runtime.sessions }

        /// Opens a WebSocket and sends a frame.
        func socket(_ hello: String) async throws -> RawPeer {
            let peer = try RawPeer(port: server.port)
            try peer.send(
                "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
            _ = try await peer.read(until: "\r\n\r\n")
            try peer.sendFrame(hello)
            return peer
        }

        func socket(of channel: WatchedServer.Channel) async throws -> RawPeer {
            try await socket(#"{"messageType":"hello","carillon":1,"credential":"\#(channel.credential)"}"#)
        }

        /// Opens a WebSocket of a client without registration, and opens its first channel. The course is that of the arrival after the
        /// registration.
        func newcomer(_ course: DelayedHome.Course) async throws -> Newcomer {
            let peer = try await socket(#"{"messageType":"hello","carillon":1}"#)
            var text = ""
            var uaid: String?
            while uaid == nil {
                text += try await next(from: peer, after: text)
                uaid = text.firstMatch(of: #/"uaid":"(\w+)"/#).map { String($0.output.1) }
            }
            let userAgent = try #require(uaid.flatMap { UserAgentID(parsing: $0) })
            link.next(course)
            var random = SystemRandomNumberGenerator()
            let id = ChannelID.random(using: &random)
            try peer.sendFrame(#"{"messageType":"register","channelID":"\#(id)"}"#)
            while true {
                text += try await next(from: peer, after: text)
                let endpoint = text.firstMatch(of: #/push\\?\/([^"\/]+)"/#)
                if let endpoint {
                    return Newcomer(peer: peer, userAgent: userAgent, token: String(endpoint.output.1), seen: text)
                }
            }
        }

        private func next(from peer: RawPeer, after text: String) async throws -> String {
            let bytes = await peer.read()
            guard !bytes.isEmpty else { throw RawPeer.Ended(seen: text) }
            return String(decoding: bytes, as: UTF8.self)
        }

        func send(to token: String, ttl: Int64 = 60) async throws -> PublishReceipt {
            let publisher = server.domain.publisher
            let request = PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: ttl)
            return try await publisher.publish(request, to: try await publisher.channel(of: token))
        }
    }

    /// A client without registration, and the token of its first channel.
    private struct Newcomer: Sendable {
        let peer: RawPeer
        let userAgent: UserAgentID
        let token: String
        /// The text received until the channel was open.
        let seen: String
    }

    private func run(_ body: @Sendable (World) async throws -> Void) async throws {
        let link = DelayedHome()
        try await WatchedServer.run(
            settings: {
                $0.anonymousApp = "anonymous"
                $0.homes = 1
            }, link: { home in link.connected(to: home) }
        ) { server in
            // No call waits for a test that failed.
            defer { link.release() }
            try await body(World(server: server, link: link))
        }
    }

    /// Whether each message is in the text once, in order.
    private func isInOrder(_ ids: [MessageID], in text: String) -> Bool {
        let places = ids.map { text.ranges(of: $0.description).map(\.lowerBound) }
        guard places.allSatisfy({ $0.count == 1 }) else { return false }
        let order = places.flatMap { $0 }
        return order == order.sorted()
    }

    @Test func `messages that are offered before the answer come behind the earlier ones, each once`() async throws {
        try await run { world in
            let channel = try await world.server.openChannel()
            var ids = [try await world.send(to: channel.token).id]
            world.link.next(.answeredLate)
            let peer = try await world.socket(of: channel)
            await world.link.hasReached()
            #expect(world.sessions.session(of: channel.device) != nil)
            for _ in 0..<3 { ids.append(try await world.send(to: channel.token).id) }
            #expect(try await world.send(to: channel.token, ttl: 0).outcome == .dropped)
            world.link.release()
            let text = try await peer.read(until: "caughtUp")
            #expect(isInOrder(ids, in: text), "\(text)")
            #expect(try await world.send(to: channel.token, ttl: 0).outcome == nil)
        }
    }

    @Test(arguments: [DelayedHome.Course.answeredLate, .delayed])
    func `a socket that closes before the answer leaves no session`(course: DelayedHome.Course) async throws {
        try await run { world in
            let channel = try await world.server.openChannel()
            world.link.next(course)
            let peer = try await world.socket(of: channel)
            await world.link.hasReached()
            let isJoined = world.sessions.session(of: channel.device) != nil
            #expect(isJoined == (course == .answeredLate))
            try peer.sendFrame(0x8)
            _ = await peer.readToEnd()
            world.link.release()
            await world.link.hasLeft()
            #expect(world.sessions.population == (0, 0))
            #expect(try await world.send(to: channel.token, ttl: 0).outcome == .dropped)
        }
    }

    @Test(arguments: [DelayedHome.Course.answerLost, .calledLate])
    func `an arrival whose outcome is unknown leaves no session, and the client comes back`(
        course: DelayedHome.Course
    ) async throws {
        try await run { world in
            let channel = try await world.server.openChannel()
            world.link.next(course)
            let text = try await world.socket(of: channel).readToEnd()
            #expect(text.contains(Self.comesBack), "\(text)")
            world.link.release()
            await world.link.hasLeft()
            #expect(world.link.connections == 1 && world.link.leaves == 1)
            #expect(world.sessions.population == (0, 0))
            #expect(try await world.send(to: channel.token, ttl: 0).outcome == .dropped)
            let again = try await world.socket(of: channel)
            _ = try await again.read(until: "caughtUp")
            #expect(try await world.send(to: channel.token, ttl: 0).outcome == nil)
        }
    }

    @Test func `a client whose home cannot be reached comes back`() async throws {
        try await run { world in
            let channel = try await world.server.openChannel()
            world.link.next(.unreachable)
            let text = try await world.socket(of: channel).readToEnd()
            #expect(text.contains(Self.comesBack), "\(text)")
            #expect(world.link.connections == 0 && world.link.leaves == 0)
            let again = try await world.socket(of: channel)
            _ = try await again.read(until: "caughtUp")
        }
    }

    // MARK: The first channel

    @Test func `a device that is stored with its first channel gets the messages from before its arrival`() async throws {
        try await run { world in
            let newcomer = try await world.newcomer(.answeredLate)
            let (peer, token) = (newcomer.peer, newcomer.token)
            await world.link.hasReached()
            let device = try await world.server.domain.publisher.channel(of: token).device
            #expect(world.sessions.session(of: device) != nil)
            let ids = [try await world.send(to: token).id, try await world.send(to: token).id]
            world.link.release()
            let text = try await peer.read(until: "caughtUp")
            #expect(isInOrder(ids, in: text), "\(text)")
            #expect(try await world.send(to: token, ttl: 0).outcome == nil)
        }
    }

    @Test(arguments: [DelayedHome.Course.answerLost, .calledLate])
    func `a device that is stored with its first channel, and whose arrival has an unknown outcome, leaves no session`(
        course: DelayedHome.Course
    ) async throws {
        try await run { world in
            let newcomer = try await world.newcomer(course)
            let text = newcomer.seen + (await newcomer.peer.readToEnd())
            #expect(text.contains(Self.comesBack), "\(text)")
            world.link.release()
            await world.link.hasLeft()
            #expect(world.link.connections == 1 && world.link.leaves == 1)
            #expect(world.sessions.population == (0, 0))
            #expect(try await world.send(to: newcomer.token, ttl: 0).outcome == .dropped)
        }
    }

    @Test func `a client whose home cannot be reached with its first channel comes back`() async throws {
        try await run { world in
            let newcomer = try await world.newcomer(.unreachable)
            let text = newcomer.seen + (await newcomer.peer.readToEnd())
            #expect(text.contains(Self.comesBack), "\(text)")
            #expect(world.link.connections == 0 && world.link.leaves == 0)
            #expect(world.sessions.population == (0, 0))
            let again = try await world.socket(
                #"{"messageType":"hello","carillon":1,"uaid":"\#(newcomer.userAgent.text)"}"#)
            _ = try await again.read(until: "caughtUp")
            #expect(try await world.send(to: newcomer.token, ttl: 0).outcome == nil)
        }
    }

    @Test(arguments: [DelayedHome.Course.answeredLate, .delayed])
    func `a socket that closes while the device of its first channel arrives leaves no session`(
        course: DelayedHome.Course
    ) async throws {
        try await run { world in
            let newcomer = try await world.newcomer(course)
            await world.link.hasReached()
            try newcomer.peer.sendFrame(0x8)
            _ = await newcomer.peer.readToEnd()
            world.link.release()
            await world.link.hasLeft()
            #expect(world.link.connections == 1)
            #expect(world.sessions.population == (0, 0))
            #expect(try await world.send(to: newcomer.token, ttl: 0).outcome == .dropped)
        }
    }

    @Test func `a socket is not the session of a device that was stored again while its own device arrived`() async throws {
        try await run { world in
            let newcomer = try await world.newcomer(.delayed)
            await world.link.hasReached()
            let (domain, app) = (world.server.domain, try AppID.checked("anonymous"))
            let serial = try await domain.publisher.channel(of: newcomer.token).device
            let found = try await domain.devices.find(serial)
            try await domain.devices.delete(try #require(found))
            let again = try await domain.devices.registerAnonymous(newcomer.userAgent, app: app, from: nil)
            #expect(again.serial != serial)
            world.link.release()
            let text = await newcomer.peer.readToEnd()
            #expect(text.contains("gone: the device was deleted"), "\(text)")
            await world.link.hasLeft()
            #expect(world.link.connections == 1 && world.link.leaves == 1)
            #expect(world.sessions.population == (0, 0))
        }
    }
}
