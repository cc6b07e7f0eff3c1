import NIOCore

/// Notices that something makes no progress any more.
enum Stall {
    /// Looks at a number now and then until the future is complete; says so when it stays the same.
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

    /// `@unchecked Sendable`: it lives on ``LoadLoop``.
    private final class Seen: @unchecked Sendable {
        var progress = -1
    }
}
