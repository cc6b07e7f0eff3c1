import Synchronization

/// The result of a request that was made by an earlier run of the app, or by a task that did not wait for it.
public struct LateReply: Sendable {
    /// The request's.
    public let id: String
    public let provider: ServiceApplication
    public let method: ServiceMethod
    public let result: Result<ServiceReply, ServiceError>
    let done: @Sendable () async -> Void

    /// Says that the app has it: until then it comes again in the next run.
    public func confirm() async { await done() }
}

/// Those that nobody had yet, for one reader at a time.
final class LateReplies: Sendable {
    private struct State {
        var waiting: [LateReply] = []
        var reader: AsyncStream<LateReply>.Continuation?
    }

    private let state = Mutex(State())

    func add(_ reply: LateReply) {
        let reader = state.withLock { state in
            if state.reader == nil { state.waiting.append(reply) }
            return state.reader
        }
        reader?.yield(reply)
    }

    func stream() -> AsyncStream<LateReply> {
        let (stream, continuation) = AsyncStream.makeStream(of: LateReply.self)
        let before = state.withLock { state in
            defer { (state.reader, state.waiting) = (continuation, []) }
            for reply in state.waiting { continuation.yield(reply) }
            return state.reader
        }
        before?.finish()
        return stream
    }
}
