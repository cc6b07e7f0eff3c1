import CarillonCore
import ServiceLifecycle

/// Tells everyone that the server is stopping: readiness turns, sessions end, and long polls answer with what they have.
struct StopNotice: Service {
    let readiness: Readiness
    let homes: Homes

    func run() async throws {
        try? await gracefulShutdown()
        readiness.beginStopping()
        for home in homes.here { home.sessions.endAll(because: .serverStops) }
    }
}
