import CarillonCore
import CarillonWire
import Hummingbird

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The Matrix push gateway that UnifiedPush describes, for endpoints of this server only: it calls nobody else.
struct MatrixRoutes: Sendable {
    let core: Core
    let addresses: Addresses

    private static let ttlSeconds: Int64 = 86_400

    func add(to routes: Routes) {
        routes.on(.get, "/_matrix/push/v1/notify", discover)
        routes.on(.post, "/_matrix/push/v1/notify", notify)
    }

    @Sendable private func discover(_ request: Request, _ context: RouteContext) async throws -> Response {
        Response(status: .ok, text: Array(#"{"unifiedpush":{"gateway":"matrix"}}"#.utf8), type: "application/json")
    }

    /// The notification goes as it came to each of its devices' endpoints; those that are dead, or not ours, are
    /// answered as rejected.
    @Sendable private func notify(_ request: Request, _ context: RouteContext) async throws -> Response {
        let body = try await request.bytes(upTo: Limits.messageBodyBytes)
        guard let notification = try? JSONDecoder().decode(Notification.self, from: Data(body)).notification,
            notification.devices.count <= 100
        else {
            throw Refusal(.jsonInvalid, "A Matrix notification has notification.devices[].pushkey, at most 100 of them.")
        }
        var rejected: [String] = []
        for device in notification.devices where try await !deliver(body, to: device.pushkey) {
            rejected.append(device.pushkey)
        }
        return Response(status: .ok, json: ["rejected": rejected])
    }

    private func deliver(_ body: [UInt8], to pushkey: String) async throws -> Bool {
        guard let token = addresses.token(ofEndpoint: pushkey) else { return false }
        let message = PublishRequest(body: body, coding: ContentCoding(.identity), ttl: Self.ttlSeconds)
        do {
            _ = try await core.publisher.publish(message, to: try await core.publisher.channel(of: token))
            return true
        } catch let refusal as Refusal where !refusal.code.isRetryable {
            return false
        }
    }

    private struct Notification: Decodable {
        struct Content: Decodable { var devices: [Device] }
        struct Device: Decodable { var pushkey: String }
        var notification: Content
    }
}
