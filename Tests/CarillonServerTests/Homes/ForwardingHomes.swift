import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import TestStores

@testable import CarillonServer

/// Two homes over one store in memory. Each has half of the shards, and is reached through a link. Requests arrive at a forwarder.
struct ForwardingHomes {
    let store: any Store
    let shared: Domain
    let homes: Homes
    let domains: [HomeDomain]
    let links: [RecordingHome]
    let handlers: [HomeRequestHandler]
    let forwarder: RequestForwarder
    /// The routes of the first home.
    let local: any HTTPResponder<RouteContext>
    let shares = ConnectionShares(
        .init(connectionsPerAddress: 100, socketsPerAddress: 100, connectionsPerDevice: 100), isBehindProxy: false)
    let admin: String

    static let addresses = Addresses(base: "https://push.example.com")
    static let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    /// The place of the home of a shard.
    static func place(of shard: Shard) -> Int { Int(shard.number) * 2 / Shard.count }

    init(attachmentFiles: any AttachmentFiles = NoAttachmentFiles()) async throws {
        let store = try await stores.open()
        let (shared, runtimes, links) = try await Self.parts(over: store)
        self.store = store
        self.shared = shared
        self.links = links
        homes = shared.homes
        domains = runtimes.map {
            HomeDomain(shared, runtime: $0, records: store, attachmentFiles: attachmentFiles, settings: .init())
        }
        let routes = domains.map { domain in
            Routes.all(
                domain: domain, addresses: Self.addresses, store: store, settings: ServerSettings(dataDirectory: ""),
                readiness: Readiness(), sockets: ConnectionLimit(limit: 1, gauge: .sockets, refused: .socketsRefused))
        }
        let responders = routes.map { $0.router().buildResponder() }
        local = responders[0]
        forwarder = RequestForwarder(
            domain: shared, homes: shared.homes, routes: routes[0], local: responders[0], clientAddress: ClientAddress())
        var handlers: [HomeRequestHandler] = []
        for (domain, responder) in zip(domains, responders) {
            handlers.append(
                HomeRequestHandler(
                    domain: domain, responder: responder,
                    publishDoor: PublishDoor(domain: domain, addresses: Self.addresses, logger: Self.logger),
                    shares: shares, logger: Self.logger))
        }
        self.handlers = handlers
        for ((domain, handler), link) in zip(zip(domains, handlers), links) {
            var answers = HomeAnswers()
            domain.addItemAnswers(to: &answers)
            domain.addChannelAnswers(to: &answers)
            link.take(Self.handling(by: handler), answers)
        }
        admin = try await shared.keys.createKey(role: .admin, app: nil, name: nil).secret.text
    }

    /// The link does not keep the handler, which refers to the home.
    private static func handling(by handler: HomeRequestHandler) -> RecordingHome.Handler {
        { [weak handler] (request: HomeRequest) async throws(HomeFault) -> HomeResponse in
            guard let handler else { throw .unreachable }
            return try await handler.handle(request)
        }
    }

    private static func parts(
        over store: any Store
    ) async throws -> (shared: Domain, runtimes: [HomeRuntime], links: [RecordingHome]) {
        let (time, ticks, random) = (TimeSource.system, TickSource.system, RandomSource.system)
        let scheduler = Scheduler.on(MultiThreadedEventLoopGroup.singleton)
        let tokenKeys = try await KeyRing.open(store, wrappedBy: nil, random)
        var runtimes: [HomeRuntime] = []
        for place in 0..<2 {
            let handle = try await store.home(store.addIncarnation(of: NodeNumber(Int64(place + 1))))
            let sessions = LiveSessions()
            let writer = InboxWriter(store: handle, sessions: sessions, scheduler: scheduler, logger: logger)
            let inbox = Inbox(
                store: handle, writer: writer, sessions: sessions,
                positions: PositionSource(epoch: try await store.claimEpoch(), after: 0), time: time, random: random)
            runtimes.append(
                HomeRuntime(
                    inbox: inbox, sessions: sessions, store: handle,
                    gate: ShardGate(
                        ShardSet(ShardSet.all.shards.filter { Self.place(of: $0) == place }), scheduler: scheduler)))
        }
        let links = runtimes.map { RecordingHome($0) }
        let homes = Homes(zip(links, runtimes).map { .init($0, local: $1) }) { Self.place(of: $0) }
        let shared = Domain(
            store: store, documents: AppDocuments(store: store), tokenKeys: tokenKeys, isKeyRingWrapped: false, homes: homes,
            server: ServerID(Bytes16(high: 1, low: 2)), history: 3,
            served: try await ServedTime(store: store, time: time, ticks: ticks), addresses: addresses.own,
            callRules: WatchRegistrar.Settings().rules, allowances: .init(), gatewaySettings: .init(), userKeys: .none,
            vetoSource: .none, turnLimits: .init(), answerBytes: AnswerMemory.standardBytes, scheduler: scheduler,
            log: BoundedLog.of(logger, ticks: ticks), time: time, ticks: ticks, random: random)
        return (shared, runtimes, links)
    }

    // MARK: Requests

    /// Sends a request as a connection does.
    ///
    /// - Parameter stream: A body that comes in parts, instead of a whole one.
    func request(
        _ method: HTTPRequest.Method, _ path: String, key: String? = nil, _ body: String = "", headers: [HTTPField] = [],
        isHead: Bool = false, stream: RequestBody? = nil
    ) async throws -> RouteFixture.Answer {
        var head = HTTPRequest(method: method, scheme: "https", authority: "push.example.com", path: path)
        for field in headers { head.headerFields.append(field) }
        if let key { head.headerFields[.authorization] = "Bearer \(key)" }
        let channel = NIOAsyncTestingChannel()
        var context = RouteContext(.connection(channel), logger: Self.logger)
        context.isHead = isHead
        if stream != nil { context.tell = { _, _ in } }
        context.share = ConnectionShare(of: shares)
        _ = context.share?.opened(from: nil)
        defer { context.share?.closed() }
        let request = Request(head: head, body: stream ?? RequestBody(buffer: ByteBuffer(string: body)))
        let response = try await forwarder.respond(to: request, context: context)
        return try await RouteFixture.Answer(response)
    }

    /// Makes the app of all devices, with a key of this role.
    func key(_ role: KeyRole) async throws -> String {
        let app = try Self.app
        if try await shared.apps.serial(of: app) == nil { _ = try await shared.apps.create(app) }
        return try await shared.keys.createKey(role: role, app: app, name: nil).secret.text
    }

    static var app: AppID { get throws { try AppID.checked("com.example.app") } }

    /// Returns secrets of registrations that lead to the home at this place.
    static func registrations(at place: Int) throws -> some Sequence<String> {
        let app = try Self.app
        return (0...).lazy.map { number in
            let text = String(number)
            return String(repeating: "0", count: 32 - text.count) + text
        }.filter { secret in
            Self.place(of: Shard(of: app, registration: SecretHash(of: secret.utf8))) == place
        }
    }

    /// Registers a device whose home is at this place.
    func device(at place: Int, key: String) async throws -> (id: DeviceID, credential: String) {
        guard let secret = try Self.registrations(at: place).first(where: { _ in true }) else { throw NoSuchDevice() }
        let answer = try await request(.post, "/v1/devices", key: key, #"{"registration":"\#(secret)"}"#)
        guard let id = DeviceID(answer["id"]) else { throw NoSuchDevice() }
        return (id, answer["credential"])
    }

    struct NoSuchDevice: Error {}

    /// Opens a channel of a device.
    func channel(_ credential: String) async throws -> (token: String, endpoint: String) {
        let id = UUID().uuidString.lowercased()
        let opened = try await request(.post, "/v1/device/channels", key: credential, #"{"channelID":"\#(id)"}"#)
        return (opened["token"], opened["endpoint"])
    }
}
