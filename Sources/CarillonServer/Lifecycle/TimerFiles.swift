import Dispatch

/// The files that waiting needs, opened before connections can take the last ones.
///
/// Dispatch opens one for each clock when somebody first waits on it, and ends the process where it may not
/// (libdispatch, `_dispatch_timeout_program`).
enum TimerFiles {
    static func open() async throws {
        try await Task.sleep(for: .milliseconds(1), clock: .continuous)
        try await Task.sleep(for: .milliseconds(1), clock: .suspending)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().asyncAfter(wallDeadline: .now() + .milliseconds(1)) { continuation.resume() }
        }
    }
}
