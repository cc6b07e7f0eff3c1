import Foundation
import Synchronization

/// The output of a process, line by line, and its exit.
final class OutputLog: Sendable {
    private struct State {
        var lines: [String] = []
        var partial: [UInt8] = []
        var status: Int32?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    var lines: [String] { state.withLock { $0.lines } }

    /// Known when the process has ended and everything was read.
    var status: Int32? { state.withLock { $0.status } }

    /// Returns when there are more lines than the given number, or the process has ended.
    func change(after count: Int) async {
        await withCheckedContinuation { continuation in
            let isDue = state.withLock { state in
                if state.lines.count > count || state.status != nil { return true }
                state.waiters.append(continuation)
                return false
            }
            if isDue { continuation.resume() }
        }
    }

    /// Reads the output to its end, and waits for the process; blocks the thread for so long.
    func follow(_ pid: pid_t, _ output: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(output, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            received(buffer[..<count])
        }
        close(output)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        update { state in
            if !state.partial.isEmpty { state.lines.append(String(decoding: state.partial, as: UTF8.self)) }
            state.status = signal == 0 ? status >> 8 & 0xFF : -signal
        }
    }

    private func received(_ bytes: ArraySlice<UInt8>) {
        update { state in
            state.partial += bytes
            while let end = state.partial.firstIndex(of: UInt8(ascii: "\n")) {
                state.lines.append(String(decoding: state.partial[..<end], as: UTF8.self))
                state.partial.removeSubrange(...end)
            }
        }
    }

    private func update(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
