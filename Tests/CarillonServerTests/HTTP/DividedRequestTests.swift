import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import NIOEmbedded
import Testing

@testable import CarillonServer

/// Requests that concern objects of several homes, and requests of sockets to a home of another device.
@Suite(.timeLimit(.minutes(5)))
struct DividedRequestTests {
    // MARK: Updates of items

    private struct Items {
        let homes: ForwardingHomes
        let sender: String
        let app: AppSerial
        /// Names of items of each home.
        let names: [[String]]

        init() async throws {
            homes = try await ForwardingHomes()
            sender = try await homes.key(.sender)
            let app = homes.app.serial
            self.app = app
            names = (0..<2).map { place in
                (0..<100).map { "item\($0)" }.filter { TwoHomes.place(of: Shard(of: app, item: $0)) == place }
            }
        }

        func publish(_ lines: [String]) async throws -> RouteFixture.Answer {
            let text = lines.joined(separator: "\n") + "\n"
            return try await homes.request(.post, "/v1/items/updates", key: sender, text)
        }

        func version(_ name: String, at place: Int) async throws -> Int64? {
            let name = try #require(ItemName(name))
            return try? await homes.domains[place].items.item(name, of: app).version
        }

        static func line(_ item: String, _ value: Int) -> String { #"{"item":"\#(item)","fields":{"x":\#(value)}}"# }
    }

    private static func lines(_ answer: RouteFixture.Answer) -> [JSONValue?] {
        guard case .array(let refusals)? = answer.json?["refusals"] else { return [] }
        return refusals.map { $0["line"] }
    }

    @Test func `lines for items of several homes are taken at the homes, and refusals name their lines`() async throws {
        let items = try await Items()
        let (first, second) = (items.names[0], items.names[1])
        let answer = try await items.publish([
            Items.line(second[0], 1), Items.line(first[0], 1), "nonsense", Items.line(second[0], 2), "",
            #"{"item":"\#(second[1])","fields":{"x":1,"x":2}}"#, Items.line(first[1], 1), Items.line(first[0], 2),
        ])
        #expect(answer.status == 200, "\(answer.json as Any)")
        #expect(answer.json?["accepted"] == .integer(5) && answer.json?["refused"] == .integer(2))
        #expect(Self.lines(answer) == [.integer(3), .integer(6)])
        #expect(try await items.version(first[0], at: 0) == 2)
        #expect(try await items.version(first[1], at: 0) == 1)
        #expect(try await items.version(second[0], at: 1) == 2)
        #expect(items.homes.links.map(\.questionCount) == [0, 1], "the home that has the request is not asked")
        for place in 0..<2 {
            let path = "/v1/items/\(items.names[place][0])"
            let item = try await items.homes.request(.get, path, key: items.sender)
            #expect(item.status == 200 && item.json?["version"] == .integer(2))
        }
    }

    /// Lines for items of the two homes in turns. The lines of the second home are 2, 4 and 6, and are in different shards.
    private func linesByTurns(_ items: Items) throws -> [String] {
        let others = items.names[1].prefix(3)
        try #require(Set(others.map { Shard(of: items.app, item: $0) }).count == 3)
        return zip(items.names[0], others).flatMap { [Items.line($0, 1), Items.line($1, 1)] }
    }

    /// The second home gets a second question only if it is known that it did nothing.
    @Test(arguments: [[HomeFault.unreachable, .unreachable], [.unreachable, .outcomeUnknown], [.outcomeUnknown]])
    func `lines of a home that does not answer are refused, and no others`(faults: [HomeFault]) async throws {
        let items = try await Items()
        for fault in faults { items.homes.links[1].fail(with: fault) }
        let answer = try await items.publish(try linesByTurns(items))
        #expect(answer.status == 200)
        #expect(answer.json?["accepted"] == .integer(3) && answer.json?["refused"] == .integer(3))
        #expect(Self.lines(answer) == [.integer(2), .integer(4), .integer(6)])
        #expect(items.homes.links[1].questionCount == faults.count)
        guard case .array(let refusals)? = answer.json?["refusals"] else { return }
        #expect(refusals.allSatisfy { $0["code"] == .string("storage_unavailable") })
    }

    @Test func `if the shard of the first line cannot be reached, lines of other shards are taken`() async throws {
        let items = try await Items()
        items.homes.links[1].fail(with: .unreachable)
        let answer = try await items.publish(try linesByTurns(items))
        #expect(answer.json?["accepted"] == .integer(5))
        #expect(Self.lines(answer) == [.integer(2)])
        #expect(items.homes.links[1].questionCount == 2)
        for name in items.names[1][1..<3] { #expect(try await items.version(name, at: 1) == 1) }
    }

    // MARK: Matrix

    @Test func `a Matrix notification reaches devices of several homes`() async throws {
        let homes = try await ForwardingHomes()
        let key = try await homes.key(.client)
        var endpoints: [String] = []
        var credentials: [String] = []
        for place in 0..<2 {
            let device = try await homes.device(at: place, key: key)
            credentials.append(device.credential)
            endpoints.append(try await homes.channel(device.credential).endpoint)
        }
        let serial = DeviceSerial(1 << 40 | 900)
        let dead = try homes.shared.tokens.seal(.init(device: serial, channel: ChannelSerial(1 << 40)))
        endpoints.append(TwoHomes.addresses.endpoint(token: dead))
        let devices = endpoints.map { #"{"app_id":"a","pushkey":"\#($0)"}"# }.joined(separator: ",")
        let body = #"{"notification":{"event_id":"$1","devices":[\#(devices)]}}"#
        func notify() async throws -> RouteFixture.Answer {
            try await homes.request(.post, "/_matrix/push/v1/notify", body)
        }
        let answer = try await notify()
        #expect(answer.status == 200, "\(answer.json as Any)")
        #expect(answer.json?["rejected"] == .array([.string(endpoints[2])]))
        #expect(homes.links.map(\.questionCount) == [1, 2])
        for credential in credentials {
            let inbox = try await homes.request(.get, "/v1/inbox", key: credential)
            guard case .array(let envelopes)? = inbox.json?["envelopes"] else { throw TwoHomes.Missing() }
            #expect(envelopes.count == 1)
        }
        // One device has it, so the Matrix server does not repeat it.
        homes.links[1].fail(with: .outcomeUnknown, .unreachable)
        let half = try await notify()
        #expect(half.status == 200 && half.json?["rejected"] == .array([]))
        #expect(homes.links.map(\.questionCount) == [2, 4])
    }

    // MARK: Sockets

    private struct Socket {
        let homes: ForwardingHomes
        let requests: SocketRequests

        init() async throws {
            homes = try await ForwardingHomes()
            requests = SocketRequests(
                domain: homes.domains[0], addresses: TwoHomes.addresses, anonymousApp: homes.app.id,
                responder: homes.routes.local, logger: TwoHomes.logger)
        }

        func perform(_ request: SessionMachine.Request) async -> SessionMachine.Answer {
            await requests.perform(request, by: RequestingDevice(), from: nil, on: NIOAsyncTestingChannel()).answer
        }

        func register(_ owner: SessionMachine.Owner) async throws -> (channel: ChannelID, device: DeviceSerial) {
            var random = SystemRandomNumberGenerator()
            let id = ChannelID.random(using: &random)
            let answer = await perform(.register(owner, id, ClientFrame.Register(channelID: id.description)))
            guard case .registered(_, _, let device) = answer else { throw TwoHomes.Missing() }
            return (id, device)
        }
    }

    @Test func `a client without registration is stored at the home that its user agent identifier leads to`() async throws {
        let socket = try await Socket()
        for place in 0..<2 {
            var userAgent = UserAgentID(random: .system)
            while TwoHomes.place(of: Shard(ofUserAgent: userAgent.hash)) != place {
                userAgent = UserAgentID(random: .system)
            }
            let first = try await socket.register(.provisional(userAgent))
            #expect(socket.homes.domains[place].home.has(first.device))
            let second = try await socket.register(.provisional(userAgent))
            #expect(second.device == first.device)
            let third = try await socket.register(.device(first.device))
            let channels = try await socket.homes.domains[place].channels.list(device: first.device)
            #expect(Set(channels.map(\.id)) == [first.channel, second.channel, third.channel])
            let answer = await socket.perform(.unregister(.device(first.device), first.channel, asWritten: "c"))
            #expect(answer == .unregistered(asWritten: "c"))
            #expect(try await socket.homes.domains[place].channels.list(device: first.device).count == 2)
        }
    }

    @Test func `a user agent that was stored in another shard before is found at its home`() async throws {
        let socket = try await Socket()
        var userAgent = UserAgentID(random: .system)
        while TwoHomes.place(of: Shard(ofUserAgent: userAgent.hash)) != 0 { userAgent = UserAgentID(random: .system) }
        let new = NewDevice(
            DeviceID(random: .system, in: Shard(number: 900)), app: socket.homes.app.id, isAnonymous: true)
        let inserted = try await socket.homes.store.insertDevice(
            new, at: socket.homes.shared.time.now(), credential: .fixed(userAgent.hash))
        guard case .stored(let device, _) = inserted else { throw TwoHomes.Missing() }
        let found = try await socket.register(.provisional(userAgent)).device
        #expect(found == device.serial)
        #expect(socket.homes.links.map(\.questionCount) == [1, 1])
    }

    @Test func `an HTTP request over a socket runs at the home of its device, and is refused if the home does not answer`()
        async throws
    {
        let socket = try await Socket()
        let device = try await socket.homes.device(at: 1, key: try await socket.homes.key(.client))
        let serial = try await socket.homes.domains[1].devices.find(device.id).serial
        func ask(_ path: String) async throws -> ServerFrame.Answer {
            let request = ClientFrame.Request(id: 7, method: "GET", path: path, body: [])
            guard case .asked(let answer) = await socket.perform(.ask(.device(serial), request)) else {
                throw TwoHomes.Missing()
            }
            return answer
        }
        let before = socket.homes.links[1].requests.count
        #expect(try await ask("/v1/device/subscriptions").status == 200)
        #expect(try await ask("/v1/apps").status == 404)
        #expect(socket.homes.links[1].requests.count == before + 1)
        #expect(socket.homes.links[1].requests.last?.session == serial)
        socket.homes.links[1].fail(with: .outcomeUnknown)
        #expect(try await ask("/v1/device/subscriptions").status == 503)
        #expect(socket.homes.links[1].requests.count == before + 2)
        socket.homes.links[1].fail(with: .unreachable)
        var random = SystemRandomNumberGenerator()
        let id = ChannelID.random(using: &random)
        let register = ClientFrame.Register(channelID: id.description)
        guard case .registrationRefused(_, let refusal) = await socket.perform(.register(.device(serial), id, register))
        else { throw TwoHomes.Missing() }
        #expect(refusal.code == .storageUnavailable)
    }

    // MARK: Pushes

    @Test func `parked pushes of all shards are sent again, also of a shard that is closing`() async throws {
        let homes = try await ForwardingHomes()
        let key = try await homes.key(.client)
        let queue = PushQueue(app: homes.app.serial, environment: .production)
        var shards: [Shard] = []
        for place in 0..<2 {
            let (domain, device) = (homes.domains[place], try await homes.device(at: place, key: key))
            shards.append(Shard(of: try await domain.devices.find(device.id).serial))
            let said = try await homes.request(
                .put, "/v1/device", key: device.credential,
                #"{"platform":"apple","pushToken":"aa0\#(place)","environment":"production"}"#)
            #expect(said.status < 300, "\(said.json as Any)")
            let channel = try await domain.publisher.channel(of: try await homes.channel(device.credential).token)
            _ = try await domain.publisher.publish(
                PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 1000), to: channel)
        }
        let now = homes.shared.time.now()
        let end = now.adding(seconds: LeasedPush.leaseSeconds)
        let leased = try await homes.store.leasePushes(of: queue, in: .all, limit: 9, at: now, until: end).pushes
        #expect(leased.count == 2)
        _ = try await homes.store.endPushes(leased.map { PushEnd($0, .parked(reason: "test"), at: now) })
        let path = "/v1/apps/\(homes.app.id)/pushes/parked/requeue"
        let answer = try await homes.domains[1].runtime.whileClosing(shards[1]) {
            try await homes.request(.post, path, key: homes.admin)
        }
        #expect(answer.json?["requeued"] == .integer(2))
    }

    // MARK: Messages

    @Test func `a message whose position leads to another home is cancelled at the home of its device`() async throws {
        let homes = try await ForwardingHomes()
        let registered = try await homes.device(at: 0, key: try await homes.key(.client))
        let domain = homes.domains[0]
        let device = try await domain.devices.find(registered.id)
        let token = try await homes.channel(registered.credential).token
        let channel = try await domain.publisher.channel(of: token)
        // A message id of an earlier version, whose positions are numbers in their order.
        let (id, now) = (MessageID(position: 1000, secret: Bytes16(high: 1, low: 2)), domain.time.now())
        #expect(TwoHomes.place(of: Shard(of: id.position)) == 1)
        let content = Envelope.Content(body: [1], coding: ContentCoding(.identity))
        let envelope = Envelope(
            id: id, device: device.serial, app: device.app, origin: channel.origin, kind: .message(content),
            acceptedAt: now, expiresAt: now.adding(seconds: 600))
        #expect(try await homes.store.commit([.append(envelope, AppendRules())]) == [.stored(replaced: nil)])
        let session = NotingSession()
        domain.runtime.sessions.join(session, device: device.serial, of: device.app)
        #expect(try await homes.request(.get, "/message/\(id)")["state"] == "waiting")
        #expect(try await homes.request(.delete, "/message/\(id)").status == 204)
        #expect(session.withdrawals == [.envelope(id.position)])
        #expect(try await homes.request(.get, "/message/\(id)")["outcome"] == "cancelled")
    }
}
