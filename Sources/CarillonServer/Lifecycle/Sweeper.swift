import CarillonCore
import CarillonSQLite
import Logging
import Metrics
import ServiceLifecycle

/// Ends what has expired, and forgets what was kept long enough, a little at a time beside the other writes.
struct Sweeper: Service {
    let store: SQLiteStore
    let core: Core
    let seconds: Int
    let logger: Logger

    private let expired = Counter(label: "carillon_messages_expired")
    private static let rowsAtOnce = 500

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    while !Task.isCancelled {
                        let swept = try await store.sweep(at: core.time.now(), limit: Self.rowsAtOnce)
                        expired.increment(by: swept.expired.count)
                        for envelope in swept.expired {
                            core.sessions.session(of: envelope.device)?.withdrew(.envelope(envelope.position)) {}
                        }
                        if swept.isDone { break }
                    }
                } catch {
                    logger.error("sweep failed", metadata: ["reason": "\(error)"])
                }
                try? await Task.sleep(for: .seconds(seconds))
            }
        }
    }
}
