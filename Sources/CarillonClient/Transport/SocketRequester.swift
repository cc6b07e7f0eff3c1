import CarillonWire
import Synchronization

/// Sends requests on the live connection, if there is one, instead of HTTP. Many requests share the connection, and no other
/// connection is opened.
final class SocketRequester: Sendable {
    private struct Waiting {
        var bytes: Int
        var continuation: CheckedContinuation<ServerFrame.Answer?, Never>
    }

    private struct State {
        var isLive = false
        var next = SocketRequester.firstID
        var waiting: [Int: Waiting] = [:]
        var bytes = 0
    }

    private let state = Mutex(State())
    private let send: @Sendable (ClientFrame.Request) -> Void

    /// The first id of these requests. Other requests have lower ids.
    static let firstID = 1 << 40
    /// The server limits the pending requests of a connection. Requests beyond these limits are sent another way.
    static let mostAtOnce = 64
    static let mostBytes = 256 << 10
    private static let frameOverhead = 128

    /// - Parameter send: Called once for each request. A response need not follow.
    init(send: @escaping @Sendable (ClientFrame.Request) -> Void) { self.send = send }

    func connected() { state.withLock { $0.isLive = true } }

    /// Ends all pending requests without a response.
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

    /// - Returns: Nil if the request must be sent another way: the device is not connected, the connection ended meanwhile, a
    ///   limit of pending requests is reached, or the task is cancelled. The server may have received the request in any case.
    func request(_ method: String, _ path: String, _ body: [UInt8]) async -> ServerFrame.Answer? {
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
                let isSent = state.withLock { state in
                    guard state.isLive, !Task.isCancelled, state.waiting.count < Self.mostAtOnce,
                        state.bytes + bytes <= Self.mostBytes
                    else { return false }
                    state.bytes += bytes
                    state.waiting[id] = Waiting(bytes: bytes, continuation: continuation)
                    return true
                }
                guard isSent else { return continuation.resume(returning: nil) }
                send(ClientFrame.Request(id: id, method: method, path: path, body: body))
            }
        } onCancel: {
            take(id)?.resume(returning: nil)
        }
    }
}
