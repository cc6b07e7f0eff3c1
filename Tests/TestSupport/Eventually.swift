/// Waits for something that is about to happen.
package func eventually(_ condition: @Sendable () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while try await !condition() {
        guard ContinuousClock.now < deadline else { throw NeverHappened() }
        try await Task.sleep(for: .milliseconds(5))
    }
}

package struct NeverHappened: Error {}
