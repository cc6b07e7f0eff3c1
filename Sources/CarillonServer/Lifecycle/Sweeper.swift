import CarillonCore
import CarillonSQLite
import Logging
import ServiceLifecycle

/// Ends what has expired, and forgets what was kept long enough, a little at a time beside the other writes.
struct Sweeper: Service {
    let store: SQLiteStore
    let seconds: Int
    let time: TimeSource
    let logger: Logger

    private static let rowsAtOnce = 500

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    while try await store.sweep(at: time.now(), limit: Self.rowsAtOnce), !Task.isCancelled {}
                } catch {
                    logger.error("sweep failed", metadata: ["reason": "\(error)"])
                }
                try? await Task.sleep(for: .seconds(seconds))
            }
        }
    }
}
