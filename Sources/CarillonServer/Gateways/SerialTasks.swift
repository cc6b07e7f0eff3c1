import Synchronization

/// Runs the work of several callers one after another, in the order of the calls. Started work is completed even if its caller is
/// cancelled.
final class SerialTasks: Sendable {
    private let last = Mutex<Task<Void, Never>?>(nil)

    func run<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let task = last.withLock { last in
            let task = Task { [last] in
                await last?.value
                return try await work()
            }
            last = Task { _ = await task.result }
            return task
        }
        return try await task.value
    }
}
