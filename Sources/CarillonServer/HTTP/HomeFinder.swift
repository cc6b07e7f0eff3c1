import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import Hummingbird

/// Finds the home that runs a request, from the identifiers in the request.
///
/// The home authenticates the request, and returns the error if an identified object does not exist. An invalid identifier
/// determines no home, because each home rejects it with the same error.
struct HomeFinder: Sendable {
    struct Place: Equatable, Sendable {
        var shard: Shard
        /// The device that determined the shard, if the request contains the device's id.
        var device: DeviceID?

        init(_ shard: Shard, of device: DeviceID? = nil) {
            self.shard = shard
            self.device = device
        }
    }

    let domain: Domain
    let homes: Homes

    /// Whether a request of a route runs in the process that received it, independent of its identifiers.
    static func runsHere(_ request: Request, by found: RouteTable.Found) -> Bool {
        switch found.home {
        // The route sends each part of the body to its home.
        case .process, .registry, .store, .newAttachment, .eachHome, .parts: true
        // The stream is a session at the home of its device.
        case .credential: found.route == "GET \(InboxRoutes.path)" && InboxRoutes.isStream(request)
        case .tokenInPath, .tokenInField, .message, .newDevice, .device, .item, .appInPath, .appOfSender, .attachment: false
        }
    }

    /// Returns the place where a request runs; nil if each home can answer it.
    ///
    /// - Throws: The fault of the store.
    func place(of request: Request, _ body: HomeBody, by found: RouteTable.Found) async throws -> Place? {
        do {
            return try await named(by: request, body, found)
        } catch is Refusal {
            return nil
        }
    }

    private func named(by request: Request, _ body: HomeBody, _ found: RouteTable.Found) async throws -> Place? {
        func parameter(_ name: Substring) -> String { String(found.parameters[name] ?? "") }
        switch found.home {
        case .process, .registry, .store, .newAttachment, .eachHome, .parts: return nil
        case .tokenInPath: return place(ofToken: parameter("token"))
        case .tokenInField: return request.headers[.gnpToken].flatMap { place(ofToken: $0) }
        case .message: return MessageID(parameter("id")).map { Place(Shard(of: $0.position)) }
        case .newDevice: return try await place(ofRegistration: body, request)
        case .credential:
            return request.bearer.flatMap { DeviceCredential(parsing: $0) }.map { place(of: $0.device) }
        case .device: return DeviceID(parameter("device")).map { place(of: $0) }
        case .item:
            guard let name = parameter("item").removingPercentEncoding.flatMap({ ItemName($0) }) else { return nil }
            return Place(Shard(of: try await domain.appOfSender(request).serial, item: name.text))
        case .appInPath:
            guard let app = AppID(parameter("app")) else { return nil }
            return try await domain.apps.serial(of: app).map { Place(Shard(of: $0)) }
        case .appOfSender: return Place(Shard(of: try await domain.appOfSender(request).serial))
        case .attachment: return AttachmentID(parameter("attachment")).map { Place(Shard(of: $0)) }
        }
    }

    private func place(of device: DeviceID) -> Place { Place(homes.shard(of: device), of: device) }

    private func place(ofToken token: String) -> Place? {
        domain.tokens.open(token).map { Place(Shard(of: $0.device)) }
    }

    /// A registration without a secret creates a device in a shard of the home that runs it.
    private func place(ofRegistration body: HomeBody, _ request: Request) async throws -> Place? {
        guard case .whole(let bytes) = body, case .string(let secret)? = JSONValue(parsing: bytes)?["registration"],
            let app = try await domain.keys.authorize(bearer: request.bearer, as: [.client]).app
        else { return nil }
        return Place(Shard(of: app, registration: SecretHash(of: secret.utf8)))
    }
}
