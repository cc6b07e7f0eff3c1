/// Runs a number of tasks at once. Returns their results in the order in which the tasks ended.
func concurrently<Value: Sendable>(
    _ count: Int, _ work: @escaping @Sendable (UInt64) async throws -> Value
) async throws -> [Value] {
    try await withThrowingTaskGroup(of: Value.self) { group in
        for number in 1...UInt64(count) { group.addTask { try await work(number) } }
        var values: [Value] = []
        for try await value in group { values.append(value) }
        return values
    }
}
