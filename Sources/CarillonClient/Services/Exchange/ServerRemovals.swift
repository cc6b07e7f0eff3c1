import Synchronization

/// Removals at the server that go on beside the requests that caused them. They end when nobody has this object.
final class ServerRemovals: Sendable {
    private struct State {
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var next: UInt64 = 0
    }

    private let state = Mutex(State())

    deinit {
        for task in state.withLock({ $0.tasks }).values { task.cancel() }
    }

    /// Begins work that must not keep the owner of this object.
    func begin(_ work: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            state.next += 1
            let number = state.next
            // Ends with the work, or with this object.
            state.tasks[number] = Task { [weak self] in
                await work()
                self?.ended(number)
            }
        }
    }

    private func ended(_ number: UInt64) {
        // The task is taken out of the lock, so that nothing is released inside it.
        _ = state.withLock { $0.tasks.removeValue(forKey: number) }
    }
}
