import Dispatch

/// Begins all of them, in order, and says so when each has come as far as it could without waiting.
func together<Value: Sendable>(
    _ works: [@Sendable () async throws -> Value], begun: @escaping @Sendable () -> Void
) async -> [Result<Value, any Error>] {
    await withTaskGroup(of: (Int, Result<Value, any Error>)?.self) { tasks in
        // One actor runs what it was given in order.
        for (index, work) in works.enumerated() {
            tasks.addTask { await result(of: work, at: index) }
        }
        tasks.addTask { @MainActor in
            begun()
            return nil
        }
        var results: [Int: Result<Value, any Error>] = [:]
        for await case let (index, result)? in tasks { results[index] = result }
        return works.indices.compactMap { results[$0] }
    }
}

@MainActor
private func result<Value: Sendable>(
    of work: @Sendable () async throws -> Value, at index: Int
) async -> (Int, Result<Value, any Error>) {
    do { return (index, .success(try await work())) } catch { return (index, .failure(error)) }
}

/// Holds up a thread of the database until the test opens it.
final class Gate: Sendable {
    private let arrival = AsyncStream<Void>.makeStream()
    private let opening = DispatchSemaphore(value: 0)

    func pass() {
        arrival.continuation.yield()
        opening.wait()
    }

    func reached() async { for await _ in arrival.stream { return } }
    func open() { opening.signal() }
}
