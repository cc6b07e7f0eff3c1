import ServiceLifecycle
import Synchronization

/// The messages that the app was given and is not done with, for each of which a start is stored.
final class MessageStarts: Sendable {
    private let present = Mutex<[Int64: BufferedMessage]>([:])
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

    func began(_ message: BufferedMessage) { present.withLock { $0[message.position] = message } }

    func handled(_ message: BufferedMessage) { _ = take(message.position) }

    /// Returns the message whose start is to be taken back; nil if there is none any more.
    func take(_ position: Int64) -> BufferedMessage? {
        suspects.end(.message(position))
        return present.withLock { $0.removeValue(forKey: position) }
    }

    func takeAll() -> [BufferedMessage] {
        let all = present.withLock { present in
            defer { present = [:] }
            return Array(present.values)
        }
        for message in all { suspects.end(.message(message.position)) }
        return all
    }
}
