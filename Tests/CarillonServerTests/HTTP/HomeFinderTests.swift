import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import CarillonServer

/// Where a request of each route runs, by ``RouteHome/table``.
@Suite(.timeLimit(.minutes(5)))
struct HomeFinderTests {
    private struct World {
        let routes: RouteFixture
        let links = [NotingHome(), NotingHome()]
        let forwarder: RequestForwarder
        let homes: Homes
        let app: AppSerial
        let sender: String
        let client: String
        private let localCount = Count()

        private final class Count: Sendable {
            let value = Mutex(0)
        }

        init() async throws {
            routes = try await RouteFixture()
            let shared = routes.domain.shared
            homes = Homes(links.map { .init($0, local: nil) }) { TwoHomes.place(of: $0) }
            let all = Routes.all(
                domain: routes.domain, addresses: TwoHomes.addresses, store: routes.store,
                settings: ServerSettings(dataDirectory: ""), readiness: routes.readiness,
                sockets: ConnectionLimit(limit: 1, gauge: .sockets, refused: .socketsRefused))
            let count = localCount
            forwarder = RequestForwarder(
                domain: shared, homes: homes, routes: all,
                local: CallbackResponder<RouteContext> { _, _ in
                    count.value.withLock { $0 += 1 }
                    return Response(status: .noContent)
                }, clientAddress: ClientAddress())
            let app = try await shared.apps.create(try TwoHomes.appID)
            self.app = app.serial
            sender = try await shared.keys.createKey(role: .sender, app: app.id, name: nil).secret.text
            client = try await shared.keys.createKey(role: .client, app: app.id, name: nil).secret.text
        }

        /// Returns the places of the homes that a request reached. Nil is the process at which the request arrived.
        func reached(_ route: String, _ names: Names) async throws -> [Int?] {
            let request = try HomeFinderTests.request(route, names)
            let before = links.map(\.events.count)
            let localBefore = localCount.value.withLock { $0 }
            let channel = NIOAsyncTestingChannel()
            let context = RouteContext(.connection(channel), logger: TwoHomes.logger)
            _ = try await forwarder.respond(to: request, context: context)
            var reached: [Int?] = []
            for (place, link) in links.enumerated() where link.events.count > before[place] { reached.append(place) }
            if localCount.value.withLock({ $0 }) > localBefore { reached.append(nil) }
            return reached
        }

        func token(of device: Int64) throws -> String {
            try routes.domain.shared.tokens.seal(.init(device: DeviceSerial(device), channel: ChannelSerial(1)))
        }
    }

    /// The names in a request that runs at the home at a place.
    private struct Names {
        var parameters: [String: String] = [:]
        var fields: [HTTPField] = []
        var bearer: String?
        var body = ""
    }

    /// A serial of a device whose home is at the place.
    private static func serial(at place: Int) -> Int64 { 1 << 40 | Int64(place) * 512 | 7 }

    private static func names(for home: RouteHome, at place: Int, _ world: World) throws -> Names {
        let id = DeviceID(Bytes16(high: 1, low: UInt64(place) * 512 + 9))
        switch home {
        case .process, .registry, .store, .newAttachment, .eachHome, .parts: return Names(bearer: world.sender)
        case .tokenInPath: return Names(parameters: ["token": try world.token(of: serial(at: place))])
        case .tokenInField:
            let token = try world.token(of: serial(at: place))
            return Names(fields: [HTTPField(name: .gnpToken, value: token)])
        case .message:
            let message = MessageID(position: 1 << 50 | Int64(place) * 512, secret: Bytes16(high: 1, low: 2))
            return Names(parameters: ["id": message.description])
        case .newDevice:
            let secret = try #require(try ForwardingHomes.registrations(at: place).first { _ in true })
            return Names(bearer: world.client, body: #"{"registration":"\#(secret)"}"#)
        case .credential:
            let secret = [UInt8](repeating: 9, count: DeviceCredential.secretByteCount)
            return Names(bearer: DeviceCredential(device: id, secret: secret).text)
        case .device: return Names(parameters: ["device": id.description])
        case .item:
            let item = try #require(
                (0..<1000).map { "item\($0)" }.first { TwoHomes.place(of: Shard(of: world.app, item: $0)) == place })
            return Names(parameters: ["item": item], bearer: world.sender)
        case .appInPath, .appOfSender: return Names(bearer: world.sender)
        case .attachment:
            let attachment = try #require(
                (0..<1000).lazy.map { AttachmentID(Bytes16(high: 1, low: UInt64($0))) }
                    .first { TwoHomes.place(of: Shard(of: $0)) == place })
            return Names(parameters: ["attachment": attachment.description])
        }
    }

    private static func request(_ route: String, _ names: Names) throws -> Request {
        let words = route.split(separator: " ")
        let parts = words[1].split(separator: "/").map { part -> String in
            guard part.hasPrefix("{") else { return String(part) }
            let name = String(part.dropFirst().dropLast())
            return names.parameters[name] ?? (name == "app" ? "com.example.app" : String(repeating: "0", count: 32))
        }
        let method = try #require(HTTPRequest.Method(rawValue: String(words[0])))
        var head = HTTPRequest(method: method, scheme: nil, authority: nil, path: "/" + parts.joined(separator: "/"))
        for field in names.fields { head.headerFields.append(field) }
        if let bearer = names.bearer { head.headerFields[.authorization] = "Bearer \(bearer)" }
        return Request(head: head, body: RequestBody(buffer: ByteBuffer(string: names.body)))
    }

    @Test func `a request of each route reaches the home that the table names, and no other`() async throws {
        let world = try await World()
        for route in world.routes.routeNames {
            let home = try #require(RouteHome.table[route], "\(route)")
            for place in 0..<2 {
                let names = try Self.names(for: home, at: place, world)
                let reached = try await world.reached(route, names)
                switch home {
                case .process, .registry, .store, .newAttachment, .eachHome, .parts: #expect(reached == [nil], "\(route)")
                case .appInPath, .appOfSender:
                    #expect(reached == [TwoHomes.place(of: Shard(of: world.app))], "\(route)")
                default: #expect(reached == [place], "\(route)")
                }
            }
        }
    }

    @Test func `an event stream runs where it arrives, and a poll at the home of its device`() async throws {
        let world = try await World()
        var names = try Self.names(for: .credential, at: 1, world)
        #expect(try await world.reached("GET /v1/inbox", names) == [1])
        names.fields = [HTTPField(name: .accept, value: "text/event-stream")]
        #expect(try await world.reached("GET /v1/inbox", names) == [nil])
        #expect(try await world.reached("POST /v1/inbox", names) == [1])
    }

    @Test func `a request with unreadable names, or without a route, runs where it arrives`() async throws {
        let world = try await World()
        let unreadable = Names(
            parameters: ["token": "x", "id": "x", "device": "x", "item": "%00", "attachment": "x", "app": "no app"],
            fields: [HTTPField(name: .gnpToken, value: "x")], bearer: "x", body: "x")
        for route in world.routes.routeNames {
            #expect(try await world.reached(route, unreadable) == [nil], "\(route)")
        }
        for route in ["GET /v1/nothing", "PUT /v1/server", "GET /v1/devices"] {
            #expect(try await world.reached(route, unreadable) == [nil], "\(route)")
        }
        let plain = Names(bearer: world.client, body: "{}")
        #expect(try await world.reached("POST /v1/devices", plain) == [nil])
    }

    @Test func `a route with fixed parts is found before a route with a parameter`() throws {
        let table = RouteTable(Array(RouteHome.table.keys))
        func route(_ method: HTTPRequest.Method, _ path: String) -> RouteTable.Found? {
            let head = HTTPRequest(method: method, scheme: nil, authority: nil, path: path)
            return table.route(of: Request(head: head, body: RequestBody(buffer: ByteBuffer())))
        }
        #expect(route(.post, "/v1/items/updates?app=a")?.home == .parts)
        #expect(route(.post, "/v1/items/updates/updates")?.parameters == ["item": "updates"])
        #expect(route(.post, "/v1/updates/explain")?.route == "POST /v1/updates/explain")
        #expect(route(.get, "/v1/services/icon/")?.route == "GET /v1/services/icon")
        #expect(route(.get, "/")?.home == .process)
        #expect(route(.put, "/")?.route == nil)
    }
}
