import CarillonWire
import Synchronization

/// Asks by the live connection, while there is one, what could be asked by HTTP: many questions share it, and none opens another.
final class SocketAsks: Sendable {
    private struct Waiting {
        var bytes: Int
        var continuation: CheckedContinuation<ServerFrame.Answer?, Never>
    }

    private struct State {
        var isLive = false
        var next = SocketAsks.firstID
        var waiting: [Int: Waiting] = [:]
        var bytes = 0
    }

    private let state = Mutex(State())
    private let send: @Sendable (ClientFrame.Request) -> Void

    /// Of its questions; others have lower ones.
    static let firstID = 1 << 40
    /// What the server keeps for one connection is bounded; what goes beyond this is asked by another way.
    static let mostAtOnce = 64
    static let mostBytes = 256 << 10
    private static let frameOverhead = 128

    /// - Parameter send: Called once for each question; nothing need come of it.
    init(send: @escaping @Sendable (ClientFrame.Request) -> Void) { self.send = send }

    func connected() { state.withLock { $0.isLive = true } }

    /// Nothing that was asked has an answer any more.
    func disconnected() {
        let lost = state.withLock { state in
            defer { (state.isLive, state.waiting, state.bytes) = (false, [:], 0) }
            return state.waiting.values.map(\.continuation)
        }
        for continuation in lost { continuation.resume(returning: nil) }
    }

    func answered(_ answer: ServerFrame.Answer) { take(answer.id)?.resume(returning: answer) }

    private func take(_ id: Int) -> CheckedContinuation<ServerFrame.Answer?, Never>? {
        state.withLock { state in
            guard let waiting = state.waiting.removeValue(forKey: id) else { return nil }
            state.bytes -= waiting.bytes
            return waiting.continuation
        }
    }

    /// - Returns: Nil where it must be asked by another way: there is no connection, it ended meanwhile, it has enough to do, or the task
    ///   is cancelled. The server may have got the question all the same.
    func ask(_ method: String, _ path: String, _ body: [UInt8]) async -> ServerFrame.Answer? {
        let bytes = body.count + path.utf8.count + Self.frameOverhead
        guard bytes <= Limits.clientFrameBytes else { return nil }
        let id = state.withLock { state -> Int? in
            guard state.isLive else { return nil }
            state.next += 1
            return state.next
        }
        guard let id else { return nil }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isAsked = state.withLock { state in
                    guard state.isLive, !Task.isCancelled, state.waiting.count < Self.mostAtOnce,
                        state.bytes + bytes <= Self.mostBytes
                    else { return false }
                    state.bytes += bytes
                    state.waiting[id] = Waiting(bytes: bytes, continuation: continuation)
                    return true
                }
                guard isAsked else { return continuation.resume(returning: nil) }
                send(ClientFrame.Request(id: id, method: method, path: path, body: body))
            }
        } onCancel: {
            take(id)?.resume(returning: nil)
        }
    }
}
