import NIOCore

/// Detects a run that makes no progress.
enum Stall {
    /// Compares the progress every 15 seconds until the future is complete, and calls `stalled` if the progress has not
    /// changed.
    static func watch(
        _ future: EventLoopFuture<Void>, progress: @escaping @Sendable () -> Int, stalled: @escaping @Sendable () -> Void
    ) {
        let seen = Seen()
        let task = LoadLoop.loop.scheduleRepeatedTask(initialDelay: .seconds(15), delay: .seconds(15)) { task in
            let now = progress()
            if now == seen.progress {
                task.cancel()
                stalled()
            }
            seen.progress = now
        }
        future.whenComplete { _ in task.cancel() }
    }

    /// `@unchecked Sendable`: it is used only on ``LoadLoop``.
    private final class Seen: @unchecked Sendable {
        var progress = -1
    }
}
