import CarillonCore
import ServiceLifecycle

/// Tells everyone that the server is stopping: readiness turns, sessions end, and long polls answer with what they have.
struct StopNotice: Service {
    let readiness: Readiness
    let sessions: LiveSessions

    func run() async throws {
        try? await gracefulShutdown()
        readiness.beginStopping()
        sessions.endAll(because: .serverStops)
    }
}
