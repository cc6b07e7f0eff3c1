import ServiceLifecycle
import Synchronization

/// That a wait is to end, for a waiter that may not have begun to wait.
///
/// It is a flag of its own because the group's flag may not be read under a lock that the group's handler takes.
final class WaitEnd: Sendable {
    private let flag = Atomic(false)

    var hasCome: Bool { flag.load(ordering: .acquiring) }

    func come() { flag.store(true, ordering: .releasing) }
}

/// Waits, and says so when the task is cancelled or its service group shuts down gracefully; at once when that was before.
func withTaskCancellationOrGracefulShutdown<Value>(
    isolation: isolated (any Actor)?, _ operation: () async -> Value, onEnd: @escaping @Sendable () -> Void
) async -> Value {
    await withTaskCancellationHandler {
        await withGracefulShutdownHandler(isolation: isolation, operation: operation, onGracefulShutdown: onEnd)
    } onCancel: {
        onEnd()
    }
}
