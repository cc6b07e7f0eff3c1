import Dispatch

/// Begins all of them, in order, and reports when each has run as far as it could without waiting.
@MainActor
func together<Value: Sendable>(
    _ works: [@Sendable () async throws -> Value], begun: @escaping @Sendable () -> Void
) async -> [Result<Value, any Error>] {
    // One actor runs its work in order.
    let tasks = works.map { work in Task { try await work() } }
    await Task { begun() }.value
    var results: [Result<Value, any Error>] = []
    for task in tasks { results.append(await task.result) }
    return results
}

/// Blocks a thread of the database until the test releases it.
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
