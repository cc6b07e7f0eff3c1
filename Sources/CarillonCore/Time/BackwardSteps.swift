import Synchronization

/// Detects that the wall clock was set back, so that due times from the later clock can be corrected.
package final class BackwardSteps: Sendable {
    private let toleranceSeconds: Int64
    /// The latest time that was observed.
    private let latest = Mutex<Timestamp?>(nil)

    /// - Parameter toleranceSeconds: The largest step that needs no correction.
    package init(toleranceSeconds: Int64 = 10) { self.toleranceSeconds = toleranceSeconds }

    /// Calls `bringBack` at the first call, because the clock can have been set while the server was stopped, and after each step
    /// back. If `bringBack` fails, the next call repeats it.
    package func follow(_ now: Timestamp, _ bringBack: (_ isFirst: Bool) async throws -> Void) async throws {
        let earlier = latest.withLock { $0 }
        let isBack = earlier.map { now.adding(seconds: toleranceSeconds) < $0 } ?? true
        if isBack { try await bringBack(earlier == nil) }
        latest.withLock { $0 = isBack ? now : max(now, $0 ?? now) }
    }
}
