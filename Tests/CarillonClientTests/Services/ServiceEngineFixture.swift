import CarillonBasics
import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport

@testable import CarillonClient

/// The engine of services of one device. Its storage is real, and a test sets the answers of its server.
final class ServiceEngineFixture: Sendable {
    static let method = ServiceMethod("com.example.x", "1", "m")
    static let own = String(repeating: "1", count: 32)
    static let other = ServicePeer(app: "com.example.files", device: String(repeating: "2", count: 32))

    let web = ScriptedWeb()
    let directory: TemporaryDirectory
    let peer: ServicePeer
    let store: ClientStore
    let box: ServiceBox
    let engine: ServiceEngine
    let client: ServiceClient
    let provider: ServiceProvider

    /// - Parameters:
    ///   - number: A digit, of which the id of the device consists.
    ///   - isRegistered: Whether the device is known to the server.
    init(
        _ app: String = "com.example.app", number: Int = 1, in directory: TemporaryDirectory = TemporaryDirectory(),
        isRegistered: Bool = true, mostRequests: Int = ServiceEngine.mostRequests, local: LocalSockets? = nil,
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    ) async throws {
        self.directory = directory
        peer = ServicePeer(app: app, device: String(repeating: String(number), count: 32))
        store = try ClientStore(directory: directory.path, patience: 60)
        _ = try store.load(server: ScriptedWeb.base, app: app)
        let identity = DeviceIdentity(device: peer.device, credential: "c", socket: "ws://127.0.0.1:1")
        if isRegistered { try await store.inStep { try StoreChange.saveIdentity(identity).apply(to: $0) } }
        let backOff = PushClient.BackOff(initial: .milliseconds(1), maximum: .milliseconds(20))
        let runner = SessionRunner(
            store: store,
            session: ClientSession(.init(), restoring: try store.load(server: ScriptedWeb.base, app: app)),
            logger: logger)
        box = ServiceBox(store: store)
        let engine = ServiceEngine(
            runner: runner, app: app, box: box,
            server: ServiceAPI(base: ScriptedWeb.base, transport: web, backOff: backOff, requester: runner.requester) {
                identity
            },
            files: AttachmentStore(
                directory: directory.path + "/services",
                server: TransferAPI(base: ScriptedWeb.base, transport: web, backOff: backOff, logger: logger) { "c" }),
            inbox: MessageFiles(root: directory.path + "/Inbox", logger: logger), local: local, logger: logger,
            mostRequests: mostRequests)
        runner.listeners.withLock { [engine] in $0.scopeChanged = { [weak engine] in engine?.scopeChanged() } }
        self.engine = engine
        client = ServiceClient(engine: engine)
        provider = ServiceProvider(engine: engine)
    }

    /// The id of a request.
    static func id(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }

    static func call(_ id: String) -> StoredCall {
        StoredCall(
            id: id, app: other.app, device: other.device, service: "com.example.x", version: "1", method: "m",
            deadlineSeconds: 60, foreground: "none", key: "k", hash: Data([1]), attachments: [], parameters: "null",
            files: [])
    }

    /// Stores a request that the server has.
    func ask(_ number: Int) async throws -> String {
        let id = Self.id(number)
        try await box.save(Self.call(id), body: [1], claiming: [], keptUntil: ServiceEngine.now + 1_000_000)
        try await box.sent(id)
        return id
    }

    /// The server reports that the device belongs to a user.
    func become(_ user: String) async throws {
        try await engine.runner.perform { session, context in
            guard let identity = session.registration.identity else { return [] }
            return session.userAccepted(.signedIn("t"), of: identity, as: user, at: context.now)
        }
    }

    func receive(_ event: ServiceEvent) async throws {
        let body = event.body
        try await engine.runner.perform { _, _ in [.write(.saveServiceEvent(body)), .notifyServices] }
    }

    /// Runs the engine as long as some work takes.
    func running(_ work: () async throws -> Void) async throws {
        let run = Task { [engine] in await engine.run() }
        do {
            try await work()
        } catch {
            run.cancel()
            await run.value
            throw error
        }
        run.cancel()
        await run.value
    }

    /// The path of a new file.
    func file(_ name: String, bytes: Int = 100) throws -> String {
        let path = directory.path + "/" + name
        try Data(count: bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Has a provider found, with the keys that it has.
    func find(_ other: ServiceEngineFixture) async throws {
        let keys = try await other.engine.keysForOthers().bundle
        let provider = JSONValue.object([
            .init(name: "app", value: .string(other.peer.app)), .init(name: "device", value: .string(other.peer.device)),
            .init(name: "name", value: .string("Files")), .init(name: "version", value: .string("1")),
            .init(name: "live", value: .bool(true)),
            .init(
                name: "services",
                value: .array([
                    .object([
                        .init(name: "id", value: .string(Self.method.service)),
                        .init(name: "version", value: .string(Self.method.version)),
                    ])
                ])), .init(name: "keys", value: keys.json),
        ])
        let list = JSONValue.object([.init(name: "providers", value: .array([provider]))])
        web.on("GET /v1/services", 200, String(decoding: list.bytes, as: UTF8.self))
    }

    /// Has the server take requests.
    func takeRequests() {
        web.on("POST /v1/services/requests", 201, #"{"id":"0","expiresAt":"2099-01-31T12:00:00.000Z"}"#)
        web.on("POST /v1/services/requests/", 204)
        web.on("DELETE /v1/services/requests", 204)
        web.on("DELETE /v1/attachments", 204)
    }

    /// The requests that this device posted, as their provider receives them.
    func postedRequests() throws -> [ServiceEvent] {
        try web.bodies("POST /v1/services/requests").compactMap { body in
            guard let json = JSONValue(parsing: body), json["app"] != nil else { return nil }
            return .request(
                try RequestHeader(json), from: peer, expiresAt: ServiceEngine.now + 3_600_000, try SealedContent(json))
        }
    }

    /// The replies that this device posted, as their consumers receive them.
    func postedReplies() throws -> [ServiceEvent] {
        try web.asked.filter { $0.hasPrefix("POST") && $0.hasSuffix("/reply") }.compactMap { path in
            guard let id = ServiceRequestID(String(path.split(separator: "/").dropLast().last ?? "")),
                let json = web.bodies(path).first.flatMap({ JSONValue(parsing: $0) })
            else { return nil }
            return .reply(id, from: peer, try SealedContent(json))
        }
    }
}
