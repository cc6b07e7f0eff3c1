import CarillonCore
import CarillonWire
import Hummingbird
import Metrics

/// The Matrix push gateway of UnifiedPush, for endpoints of this server only. It sends no requests to other servers.
struct MatrixRoutes: Sendable {
    let domain: HomeDomain
    let addresses: PublicAddresses

    static let path = "/_matrix/push/v1/notify"
    private static let ttlSeconds: Int64 = 86_400

    func add(to routes: Routes) {
        routes.on(.get, RouterPath(Self.path), discover)
        routes.on(.post, RouterPath(Self.path), notify)
    }

    @Sendable private func discover(_ request: Request, _ context: RouteContext) async throws -> Response {
        Response(status: .ok, text: Array(#"{"unifiedpush":{"gateway":"matrix"}}"#.utf8), type: "application/json")
    }

    /// Sends the notification to each device's endpoint, with the device's own entry. Invalid endpoints, and endpoints of other
    /// servers, are returned as rejected.
    ///
    /// A temporary failure is reported only if no device received the notification. The homeserver then repeats the notification
    /// for every device, and sends no later notification before.
    @Sendable private func notify(_ request: Request, _ context: RouteContext) async throws -> Response {
        let body = try await request.bytes(upTo: Limits.matrixBodyBytes)
        let notification = try MatrixNotification(parsing: body, token: addresses.token(ofEndpoint:))
        var rejected: [String] = []
        var isDelivered = false
        var failure: Refusal?
        for device in notification.devices {
            do {
                let outcome = try await deliver(notification, to: device)
                Self.counters[outcome]?.increment()
                if outcome == .rejected { rejected += device.pushkeys }
                if outcome == .delivered || outcome == .shortened { isDelivered = true }
            } catch {
                Self.counters[.failed]?.increment()
                let refusal = Refusal(error, logger: context.logger)
                // If the outcome at one home is unknown, the notification can have been accepted.
                let isUnknown = (error as? StoreFault)?.kind == .outcomeUnknown
                if failure == nil || isUnknown { failure = refusal }
            }
        }
        if let failure, !isDelivered { throw failure }
        return Response(status: .ok, json: ["rejected": rejected])
    }

    /// The result of the notification for one device.
    private enum Outcome: String, CaseIterable {
        case delivered, shortened, rejected, failed
        case tooLarge = "too_large"
    }

    private static let counters = Dictionary(
        uniqueKeysWithValues: Outcome.allCases.map { ($0, ServerMetric.matrixNotifications.counter($0.rawValue)) })

    private func deliver(_ notification: MatrixNotification, to device: MatrixNotification.Device) async throws -> Outcome {
        guard let token = device.token else { return .rejected }
        do {
            switch notification.message(for: device) {
            case .tooLarge:
                try await domain.publishAtHome(token, nil, ttlSeconds: Self.ttlSeconds)
                return .tooLarge
            case .whole(let body):
                try await domain.publishAtHome(token, body, ttlSeconds: Self.ttlSeconds)
                return .delivered
            case .shortened(let body):
                try await domain.publishAtHome(token, body, ttlSeconds: Self.ttlSeconds)
                return .shortened
            }
        } catch let refusal as Refusal where !refusal.code.isRetryable {
            return .rejected
        }
    }
}
