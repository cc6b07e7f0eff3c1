import CarillonBasics
import CarillonWire
import Foundation
import Logging
import TestSupport

@testable import CarillonClient

/// The engine of services of one device, with a server that answers what a test says.
final class EngineFixture: Sendable {
    static let method = ServiceMethod("com.example.x", "1", "m")

    let web = ScriptedWeb()
    let peer: ServicePeer
    let engine: ServiceEngine
    let client: ServiceClient
    let provider: ServiceProvider
    private let directory = TemporaryDirectory()

    /// - Parameters:
    ///   - number: A digit, of which the id of the device consists.
    ///   - isRegistered: Whether the device is known to the server.
    init(
        _ app: String = "com.example.app", number: Int = 1, isRegistered: Bool = true,
        mostRequests: Int = ServiceEngine.mostRequests, local: LocalSockets? = nil
    ) async throws {
        peer = ServicePeer(app: app, device: String(repeating: String(number), count: 32))
        let store = try ClientStore(directory: directory.path)
        _ = try store.load(server: ScriptedWeb.base, app: app)
        let identity = DeviceIdentity(device: peer.device, credential: "c", socket: "ws://127.0.0.1:1")
        if isRegistered {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                store.schedule { db in
                    continuation.resume(with: Result { try StoreChange.saveIdentity(identity).apply(to: db) })
                }
            }
        }
        let logger = Logger(label: "test")
        let backOff = PushClient.BackOff(initial: .milliseconds(1), maximum: .milliseconds(20))
        let runner = SessionRunner(
            store: store,
            session: ClientSession(.init(), restoring: try store.load(server: ScriptedWeb.base, app: app)),
            logger: logger)
        engine = ServiceEngine(
            runner: runner, app: app, box: ServiceBox(store: store),
            server: ServiceServer(base: ScriptedWeb.base, transport: web, backOff: backOff, asks: runner.asks) {
                identity
            },
            files: AttachmentStore(
                directory: directory.path + "/services",
                server: TransferServer(base: ScriptedWeb.base, transport: web, backOff: backOff, logger: logger) { "c" }),
            inbox: MessageFiles(root: directory.path + "/Inbox"), local: local, logger: logger,
            mostRequests: mostRequests)
        client = ServiceClient(engine: engine)
        provider = ServiceProvider(engine: engine)
    }

    /// The path of a new file.
    func file(_ name: String, bytes: Int = 100) throws -> String {
        let path = directory.path + "/" + name
        try Data(count: bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Has a provider found, with the keys that it has.
    func find(_ other: EngineFixture) async throws {
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

    /// Stores what the server brings.
    func bring(_ event: ServiceEvent) async throws {
        let body = event.body
        try await engine.runner.perform { _, _ in [.write(.saveServiceEvent(body)), .tellServices] }
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
