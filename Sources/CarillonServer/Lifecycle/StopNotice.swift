import CarillonCore
import ServiceLifecycle

/// Tells everyone that the server is stopping: readiness turns, sessions end, long polls answer with what they have, and the
/// service manager hears of it.
struct StopNotice: Service {
    let readiness: Readiness
    let homes: Homes
    let notifySocket: NotifySocket?

    func run() async throws {
        try? await gracefulShutdown()
        readiness.beginStopping()
        for home in homes.here { home.endAll(because: .serverStops) }
        await notifySocket?.send("STOPPING=1")
    }
}
