/// Runs the work for each number below a count, all at once, and returns the results in the order of the numbers.
func atOnce<Value: Sendable>(
    _ count: Int, _ work: @escaping @Sendable (Int) async throws -> Value
) async throws -> [Value] {
    try await withThrowingTaskGroup(of: (number: Int, value: Value).self) { group in
        for number in 0..<count {
            group.addTask { (number: number, value: try await work(number)) }
        }
        var results: [(number: Int, value: Value)] = []
        for try await result in group { results.append(result) }
        return results.sorted { $0.number < $1.number }.map { $0.value }
    }
}

/// Runs the work for each number from one to a count, all at once, and returns the results in the order of the numbers.
func concurrently<Value: Sendable>(
    _ count: Int, _ work: @escaping @Sendable (UInt64) async throws -> Value
) async throws -> [Value] {
    try await atOnce(count) { try await work(UInt64($0) + 1) }
}
