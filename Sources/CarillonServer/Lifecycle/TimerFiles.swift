import Dispatch

/// Opens the files that timers need, before connections can use the last available files.
///
/// Dispatch opens a file for each clock at the first wait on the clock. If it cannot open the file, it ends the process
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
