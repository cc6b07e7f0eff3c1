import ServiceLifecycle
import Synchronization

/// A flag that ends a wait, also if the wait has not begun yet.
///
/// It is separate from the service group's flag, which must not be read under a lock that the group's handler takes.
final class StopFlag: Sendable {
    private let flag = Atomic(false)

    var isSet: Bool { flag.load(ordering: .acquiring) }

    func set() { flag.store(true, ordering: .releasing) }
}

/// Runs an operation, and calls `onEnd` when the task is cancelled or its service group shuts down gracefully; at once if that
/// happened before.
func withTaskCancellationOrGracefulShutdown<Value>(
    isolation: isolated (any Actor)?, _ operation: () async -> Value, onEnd: @escaping @Sendable () -> Void
) async -> Value {
    await withTaskCancellationHandler {
        await withGracefulShutdownHandler(isolation: isolation, operation: operation, onGracefulShutdown: onEnd)
    } onCancel: {
        onEnd()
    }
}
