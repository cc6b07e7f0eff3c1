import CarillonCore
import CarillonWire
import Hummingbird
import NIOHTTP1
import Synchronization

/// The health checks: whether the process is running, and whether it is ready for requests.
struct HealthRoutes: Sendable {
    private let store: StoreProbe
    private let readiness: Readiness
    private let gateways: Gateways
    private let isOnOwnListener: Bool

    /// - Parameter isOnOwnListener: Whether these routes are not on the HTTP listener, which can open later.
    init(store: any ServerStore, readiness: Readiness, gateways: Gateways, isOnOwnListener: Bool = false) {
        self.isOnOwnListener = isOnOwnListener
        self.store = StoreProbe(store)
        self.readiness = readiness
        self.gateways = gateways
    }

    private static let live = "/health/live"
    private static let ready = "/health/ready"

    /// Whether a request is a health check of a load balancer. Such requests are answered even beyond the connection limits.
    static func isHealthCheck(_ head: HTTPRequestHead) -> Bool {
        let path = head.uri.prefix { $0 != "?" }
        return switch head.method {
        case .GET, .HEAD: path == live || path == ready
        case .OPTIONS: path == "/"
        default: false
        }
    }

    func add(to routes: Routes) {
        routes.on(.get, RouterPath(Self.live)) { _, _ in Response(status: .ok, json: ["status": "live"]) }
        routes.on(.get, RouterPath(Self.ready)) { _, _ in
            if readiness.isStopping { throw Refusal(.stopping, "The server is stopping.", retryAfterSeconds: 5) }
            if readiness.hasClosedListener {
                throw Refusal(
                    .listenerClosed, "A listener of the server closed; the server is opening it again.", retryAfterSeconds: 5
                )
            }
            if isOnOwnListener, !readiness.isListening {
                throw Refusal(.listenerClosed, "The HTTP listener of the server is not open yet.", retryAfterSeconds: 5)
            }
            if let fault = await store.fault() {
                throw Refusal(
                    fault.kind == .full ? .storageFull : .storageUnavailable,
                    "The store cannot be used: \(fault.message).", retryAfterSeconds: 5)
            }
            let paused = gateways.pausedQueues.map {
                HealthBody.PausedQueue(app: $0.app, environment: $0.environment, reason: $0.reason)
            }
            return Response(status: .ok, json: HealthBody(status: "ready", gateways: paused.isEmpty ? nil : paused))
        }
    }
}

private struct HealthBody: Codable {
    /// A paused push queue of an app.
    struct PausedQueue: Codable {
        var app: String
        var environment: String
        var reason: String
    }

    var status: String
    var gateways: [PausedQueue]?
}

/// Whether the server is ready for requests, without regard to the store.
final class Readiness: Sendable {
    private let stopping = Atomic<Bool>(false)
    private let listening = Atomic<Bool>(false)
    private let closedListeners = Atomic<Int>(0)

    /// Whether the server has begun to stop.
    var isStopping: Bool { stopping.load(ordering: .relaxed) }

    func beginStopping() { stopping.store(true, ordering: .relaxed) }

    /// Whether the HTTP listener has opened.
    var isListening: Bool { listening.load(ordering: .relaxed) }

    func beganListening() { listening.store(true, ordering: .relaxed) }

    /// Whether a listener closed and has not opened again.
    var hasClosedListener: Bool { closedListeners.load(ordering: .relaxed) > 0 }

    func listenerClosed() { closedListeners.wrappingAdd(1, ordering: .relaxed) }

    func listenerOpened() { closedListeners.wrappingSubtract(1, ordering: .relaxed) }
}
