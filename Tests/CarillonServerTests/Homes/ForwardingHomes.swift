import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import NIOEmbedded

@testable import CarillonServer

/// Two homes with their routes. Requests arrive at a forwarder.
@dynamicMemberLookup
struct ForwardingHomes {
    let world: TwoHomes
    let routes: HomeRoutes
    let quotas = ConnectionQuotas(
        .init(connectionsPerAddress: 100, socketsPerAddress: 100, connectionsPerDevice: 100), isBehindProxy: false)
    let admin: String

    init(attachmentFiles: any AttachmentFiles = NoAttachmentFiles()) async throws {
        let world = try await TwoHomes(attachmentFiles: attachmentFiles, clock: nil)
        self.world = world
        routes = HomeRoutes(
            of: world.domains, addresses: TwoHomes.addresses, quotas: quotas, clientAddress: ClientAddress(),
            logger: TwoHomes.logger
        ) { domain in
            Routes.all(
                domain: domain, addresses: TwoHomes.addresses, store: world.store,
                settings: ServerSettings(dataDirectory: ""), readiness: Readiness(),
                sockets: ConnectionLimit(limit: 1, gauge: .sockets, refused: .socketsRefused))
        }
        admin = try await world.shared.keys.createKey(role: .admin, app: nil, name: nil).secret.text
    }

    subscript<Value>(dynamicMember path: KeyPath<TwoHomes, Value>) -> Value { world[keyPath: path] }

    // MARK: Requests

    /// Sends a request as a connection does.
    ///
    /// - Parameter stream: A body in parts, instead of a complete one.
    func request(
        _ method: HTTPRequest.Method, _ path: String, key: String? = nil, _ body: String = "", headers: [HTTPField] = [],
        isHead: Bool = false, stream: RequestBody? = nil
    ) async throws -> RouteFixture.Answer {
        var head = HTTPRequest(method: method, scheme: "https", authority: "push.example.com", path: path)
        for field in headers { head.headerFields.append(field) }
        if let key { head.headerFields[.authorization] = "Bearer \(key)" }
        let channel = NIOAsyncTestingChannel()
        var context = RouteContext(.connection(channel), logger: TwoHomes.logger)
        context.isHead = isHead
        if stream != nil { context.inform = { _, _ in } }
        context.usage = ConnectionUsage(of: quotas)
        _ = context.usage?.opened(from: nil)
        defer { context.usage?.closed() }
        let request = Request(head: head, body: stream ?? RequestBody(buffer: ByteBuffer(string: body)))
        let response = try await routes.responder.respond(to: request, context: context)
        return try await RouteFixture.Answer(response)
    }

    /// Makes a key of the app.
    func key(_ role: KeyRole) async throws -> String {
        try await world.shared.keys.createKey(role: role, app: world.app.id, name: nil).secret.text
    }

    /// Returns secrets of registrations that lead to the home at this place.
    static func registrations(at place: Int) throws -> some Sequence<String> {
        let app = try TwoHomes.appID
        return (0...).lazy.map { number in
            let text = String(number)
            return String(repeating: "0", count: 32 - text.count) + text
        }.filter { secret in
            TwoHomes.place(of: Shard(of: app, registration: SecretHash(of: secret.utf8))) == place
        }
    }

    /// Registers a device whose home is at this place.
    func device(at place: Int, key: String) async throws -> (id: DeviceID, credential: String) {
        guard let secret = try Self.registrations(at: place).first(where: { _ in true }) else { throw TwoHomes.Missing() }
        let answer = try await request(.post, "/v1/devices", key: key, #"{"registration":"\#(secret)"}"#)
        guard let id = DeviceID(answer["id"]) else { throw TwoHomes.Missing() }
        return (id, answer["credential"])
    }

    /// Opens a channel of a device.
    func channel(_ credential: String) async throws -> (token: String, endpoint: String) {
        let id = UUID().uuidString.lowercased()
        let opened = try await request(.post, "/v1/device/channels", key: credential, #"{"channelID":"\#(id)"}"#)
        return (opened["token"], opened["endpoint"])
    }
}
