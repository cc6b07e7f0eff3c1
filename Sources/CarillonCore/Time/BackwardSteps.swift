import Synchronization

/// Says when the wall clock was set back, so that due times which were set by the later clock are brought back.
package final class BackwardSteps: Sendable {
    private let toleranceSeconds: Int64
    /// The latest moment that was seen.
    private let latest = Mutex<Timestamp?>(nil)

    /// - Parameter toleranceSeconds: The largest step that needs no correction.
    package init(toleranceSeconds: Int64 = 10) { self.toleranceSeconds = toleranceSeconds }

    /// Calls `bringBack` at the first time, as the clock may have been set while the server was stopped, and after each step
    /// back; once more when it failed.
    package func follow(_ now: Timestamp, _ bringBack: (_ isFirst: Bool) async throws -> Void) async throws {
        let earlier = latest.withLock { $0 }
        let isBack = earlier.map { now.adding(seconds: toleranceSeconds) < $0 } ?? true
        if isBack { try await bringBack(earlier == nil) }
        latest.withLock { $0 = isBack ? now : max(now, $0 ?? now) }
    }
}
