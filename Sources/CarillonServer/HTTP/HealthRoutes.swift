import CarillonCore
import CarillonSQLite
import CarillonWire
import Hummingbird
import Synchronization

/// Whether the process lives, and whether it should be sent work.
struct HealthRoutes: Sendable {
    let store: SQLiteStore
    let readiness: Readiness

    func add(to routes: Routes) {
        routes.on(.get, "/health/live") { _, _ in Response(status: .ok, json: ["status": "live"]) }
        routes.on(.get, "/health/ready") { _, _ in
            guard readiness.isReady else {
                throw Refusal(.stopping, "The server is stopping.", retryAfterSeconds: 5)
            }
            try await store.checkHealth()
            return Response(status: .ok, json: ["status": "ready"])
        }
    }
}

/// Turns once, when the server begins to stop.
final class Readiness: Sendable {
    private let stopping = Atomic<Bool>(false)

    var isReady: Bool { !stopping.load(ordering: .relaxed) }

    func beginStopping() { stopping.store(true, ordering: .relaxed) }
}
