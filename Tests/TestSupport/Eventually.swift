/// Returns once the condition is true; throws after 50 seconds, with the place that waited.
package func eventually(
    file: StaticString = #fileID, line: UInt = #line, _ condition: @Sendable () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + .seconds(50)
    while try await !condition() {
        guard ContinuousClock.now < deadline else { throw NeverHappened(file: file, line: line) }
        try await Task.sleep(for: .milliseconds(5))
    }
}

package struct NeverHappened: Error, CustomStringConvertible {
    package let description: String

    package init(file: StaticString = #fileID, line: UInt = #line) {
        description = "what \(file):\(line) waited for never happened"
    }
}
