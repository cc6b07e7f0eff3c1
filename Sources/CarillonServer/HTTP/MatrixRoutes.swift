import CarillonCore
import CarillonWire
import Hummingbird

/// The Matrix push gateway that UnifiedPush describes, for endpoints of this server only: it calls nobody else.
struct MatrixRoutes: Sendable {
    let domain: Domain
    let addresses: Addresses

    private static let ttlSeconds: Int64 = 86_400

    func add(to routes: Routes) {
        routes.on(.get, "/_matrix/push/v1/notify", discover)
        routes.on(.post, "/_matrix/push/v1/notify", notify)
    }

    @Sendable private func discover(_ request: Request, _ context: RouteContext) async throws -> Response {
        Response(status: .ok, text: Array(#"{"unifiedpush":{"gateway":"matrix"}}"#.utf8), type: "application/json")
    }

    /// Each device's endpoint gets the notification as it came, with the device's own entry; those that are dead, or not
    /// ours, are answered as rejected.
    @Sendable private func notify(_ request: Request, _ context: RouteContext) async throws -> Response {
        let notification = try MatrixNotification(parsing: try await request.bytes(upTo: Limits.messageBodyBytes))
        var rejected: [String] = []
        for device in notification.devices where try await !deliver(device) { rejected.append(device.pushkey) }
        return Response(status: .ok, json: ["rejected": rejected])
    }

    private func deliver(_ device: MatrixNotification.Device) async throws -> Bool {
        guard let token = addresses.token(ofEndpoint: device.pushkey) else { return false }
        let message = PublishRequest(body: device.body, coding: ContentCoding(.identity), ttl: Self.ttlSeconds)
        do {
            _ = try await domain.publisher.publish(message, to: try await domain.publisher.channel(of: token))
            return true
        } catch let refusal as Refusal where !refusal.code.isRetryable {
            return false
        }
    }
}
