import CarillonCore
import ServiceLifecycle

/// Announces that the server is stopping: readiness changes, sessions end, long polls are answered with the available envelopes,
/// and the service manager is notified.
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
