import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

/// Logs SIGHUP. The signal has no other effect: closing a terminal does not end the server, and no file is read again.
struct HangupService: Service {
    let logger: Logger

    /// Ignores the signal until ``run()`` logs it.
    static func ignore() { signal(SIGHUP, SIG_IGN) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in await UnixSignalsSequence(trapping: .sighup) {
                logger.notice("ignoring SIGHUP")
            }
        }
    }
}
