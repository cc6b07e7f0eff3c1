import ServiceLifecycle
import Synchronization

/// The messages that the app was given and is not done with, for each of which a start is stored.
final class MessageStarts: Sendable {
    private struct State {
        var messages: [Int64: BufferedMessage] = [:]
        /// The client stopped: the process may end in an orderly way.
        var isStopped = false
    }

    private let state = Mutex(State())
    private let suspects: SuspectTurns

    init(_ suspects: SuspectTurns) { self.suspects = suspects }

    /// Waits until a message that was under way when the process ended may be given to the app. Returns false when the task is cancelled, its
    /// service group shuts down, or the iteration is over.
    func hasTurn(_ message: BufferedMessage, isOver: @Sendable () -> Bool) async -> Bool {
        while !suspects.begin(.message(message.position), at: .now) {
            do { try await Task.sleep(for: .milliseconds(10)) } catch { return false }
            if Task.isShuttingDownGracefully || isOver() { return false }
        }
        return true
    }

    /// The client begins to run.
    func resume() { state.withLock { $0.isStopped = false } }

    /// Notes that the app is given a message. Returns false, and no start is stored, between the end of a run and the next run.
    func began(_ message: BufferedMessage) -> Bool {
        state.withLock { state in
            guard !state.isStopped else { return false }
            state.messages[message.position] = message
            return true
        }
    }

    /// Whether the start of a message was not taken back.
    func hasStarted(_ position: Int64) -> Bool { state.withLock { $0.messages[position] != nil } }

    func handled(_ message: BufferedMessage) { _ = take(message.position) }

    /// Returns the message whose start must be taken back; nil if no start is stored.
    func take(_ position: Int64) -> BufferedMessage? {
        suspects.end(.message(position))
        return state.withLock { $0.messages.removeValue(forKey: position) }
    }

    /// The client stops. Returns the messages whose starts are to be taken back.
    func stop() -> [BufferedMessage] {
        let all = state.withLock { state in
            defer { state.messages = [:] }
            state.isStopped = true
            return Array(state.messages.values)
        }
        for message in all { suspects.end(.message(message.position)) }
        return all
    }
}
