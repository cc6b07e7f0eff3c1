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

/// All routes over a store in memory, without a socket.
struct RouteFixture {
    struct Answer {
        var status: Int
        var headers: HTTPFields
        var body: Data

        var json: JSONValue? { JSONValue(parsing: Array(body)) }
        /// The code of a problem document.
        var code: String? {
            if case .string(let code)? = json?["code"] { code } else { nil }
        }

        subscript(name: String) -> String {
            if case .string(let text)? = json?[name] { text } else { "" }
        }
    }

    let store: any Store
    let domain: HomeDomain
    /// Has all lines of the log, and knows the secrets of all requests and answers.
    let watch: SecretWatch
    let readiness = Readiness()
    let admin: String
    let quotas = ConnectionQuotas(
        .init(connectionsPerAddress: 100, socketsPerAddress: 100, connectionsPerDevice: 1000), isBehindProxy: false)
    /// Every route that there is.
    let declared: [(method: HTTPRequest.Method, path: String)]
    /// See ``Routes/names``.
    let routeNames: [String]
    /// See ``Routes/externalNames``.
    let externalNames: [String]
    /// See ``Routes/queries``.
    let queries: [String: QueryParameters]
    var responder: any HTTPResponder<RouteContext>

    /// - Parameter link: Returns how connections reach the home.
    init(
        _ rateLimits: RateLimits.Settings = .init(), key: WrappingKey? = nil, userKeys: UserKeyFetcher = .none,
        approvalHookCaller: ApprovalHookCaller = .none, itemLimits: ItemEngine.Limits = .init(),
        updateLimits: UpdateLimits = .init(),
        turnLimits: RequestLimiter.Limits = .init(),
        store: (any Store)? = nil, attachmentFiles: any AttachmentFiles = NoAttachmentFiles(),
        base: String = "https://push.example.com", time: TimeSource = .system, ticks: TickSource = .system,
        positionsUsed: Int64 = 0, logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
        link: (any Home) -> any Home = { $0 }
    ) async throws {
        let opened: any Store
        if let store { opened = store } else { opened = try await stores.open() }
        self.store = opened
        watch = SecretWatch(before: logger)
        let addresses = PublicAddresses(base: base)
        domain = try await HomeDomain(
            store: opened, addresses: addresses.publicURLs, scheduler: .on(MultiThreadedEventLoopGroup.singleton),
            logger: watch.logger,
            rateLimits: rateLimits, userKeys: userKeys, approvalHookCaller: approvalHookCaller, itemLimits: itemLimits,
            updateLimits: updateLimits, turnLimits: turnLimits, attachmentFiles: attachmentFiles, wrappedBy: key,
            time: time, ticks: ticks, positionsUsed: positionsUsed, link: link)
        admin = try await domain.keys.createKey(role: .admin, app: nil, name: nil).secret.text
        watch.note(admin)
        let routes = Routes.all(
            domain: domain, addresses: addresses, store: opened, settings: ServerSettings(dataDirectory: ""),
            readiness: readiness, sockets: ConnectionLimit(limit: 1, gauge: .sockets, refused: .socketsRefused))
        declared = routes.all
        routeNames = routes.names
        externalNames = routes.externalNames
        queries = routes.queries
        responder = routes.router().buildResponder()
    }

    func request(
        _ method: HTTPRequest.Method, _ path: String, key: String? = nil, _ body: String? = nil,
        headers: [HTTPField] = []
    ) async throws -> Answer {
        var head = HTTPRequest(method: method, scheme: "https", authority: "push.example.com", path: path)
        for field in headers { head.headerFields.append(field) }
        if let key { head.headerFields[.authorization] = "Bearer \(key)" }
        noteSecrets(head, key, body)
        let bytes = ByteBuffer(string: body ?? "")
        let channel = NIOAsyncTestingChannel()
        var context = RouteContext(.connection(channel), logger: domain.logger)
        context.usage = ConnectionUsage(of: quotas)
        _ = context.usage?.opened(from: nil)
        defer { context.usage?.closed() }
        var response = try await responder.respond(
            to: Request(head: head, body: RequestBody(buffer: bytes)), context: context)
        if let poll = context.usage?.takePoll() {
            do {
                response = try await answer(of: poll)
            } catch {
                response = Response(refusal: Refusal(error, logger: domain.logger))
            }
        }
        let result = try await Answer(response)
        watch.noteMembers(of: result.body)
        return result
    }

    private func noteSecrets(_ head: HTTPRequest, _ key: String?, _ body: String?) {
        let path = head.path ?? ""
        if let key { watch.note(key) } else if let field = head.headerFields[.authorization] { watch.noteField(field) }
        watch.noteToken(in: path)
        guard let body else { return }
        if path.hasPrefix("/push/") { watch.note(body) }
        watch.noteMembers(of: body.utf8)
    }

    /// Waits as a connection does.
    private func answer(of poll: WaitingPoll) async throws -> Response {
        let (news, hears) = AsyncStream.makeStream(of: Bool.self)
        // Ends with the time, or is cancelled.
        let clock = Task {
            try await Task.sleep(for: .seconds(poll.waitSeconds))
            hears.yield(true)
        }
        defer { clock.cancel() }
        poll.onChange { hears.yield(false) }
        for await isLast in news {
            if let response = try await poll.look(isLast: isLast) { return response }
            poll.onChange { hears.yield(false) }
        }
        throw CancellationError()
    }

    /// An app with its keys, and a device of it.
    func device() async throws -> (id: String, credential: String, clientKey: String) {
        _ = try await request(.post, "/v1/apps", key: admin, #"{"id":"com.example.app"}"#)
        let key = try await request(.post, "/v1/keys", key: admin, #"{"role":"client","app":"com.example.app"}"#)
        let device = try await request(.post, "/v1/devices", key: key["secret"])
        return (device["id"], device["credential"], key["secret"])
    }
}

extension RouteFixture.Answer {
    /// Reads the body of a response.
    init(_ response: Response) async throws {
        let collected = Collected()
        try await response.body.write(BodyWriter(collected: collected))
        self.init(status: response.status.code, headers: response.headers, body: collected.bytes)
    }

    private final class Collected {
        var bytes = Data()
    }

    private struct BodyWriter: ResponseBodyWriter {
        let collected: Collected
        func write(_ buffer: ByteBuffer) { collected.bytes.append(contentsOf: buffer.readableBytesView) }
        func finish(_ trailingHeaders: HTTPFields?) {}
    }
}
