import Synchronization

/// The result of a request that an earlier run of the app made, or that was made by a task that did not wait for it.
public struct LateReply: Sendable {
    /// The id of the request.
    public let id: String
    public let provider: ServiceApplication
    public let method: ServiceMethod
    public let result: Result<ServiceReply, ServiceError>
    let done: @Sendable () async -> Void

    /// Confirms that the app has handled the result. Until then the result is delivered again in each run, for up to seven days:
    /// see ``ServiceClient/replies``.
    public func confirm() async { await done() }
}

/// The results that were not read yet, for one reader at a time. The store limits their number and size.
final class LateReplies: Sendable {
    private struct State {
        var waiting: [LateReply] = []
        /// The number of the present reader.
        var reader = 0
        var waiter: CheckedContinuation<LateReply?, Never>?
    }

    private let state = Mutex(State())

    func add(_ reply: LateReply) {
        let waiter = state.withLock { state -> CheckedContinuation<LateReply?, Never>? in
            if let waiter = state.waiter.take() { return waiter }
            if !state.waiting.contains(where: { $0.id == reply.id }) { state.waiting.append(reply) }
            return nil
        }
        waiter?.resume(returning: reply)
    }

    func remove(_ id: String) { state.withLock { $0.waiting.removeAll { $0.id == id } } }

    func removeAll() { state.withLock { $0.waiting = [] } }

    /// The calls that surround the delivery of results to the reader.
    struct Calls: Sendable {
        /// Called before a result is delivered to the reader, with the id of its request. Returns false if the result must not be
        /// delivered.
        var begins: @Sendable (String) async -> Bool = { _ in true }
        /// Called when the reader requests the next result, or its iteration ended.
        var ended: @Sendable (String) -> Void = { _ in }
        /// Called if a result is not delivered after ``begins``: another reader can receive it.
        var notDelivered: @Sendable (String) async -> Void = { _ in }
    }

    /// Returns a new stream, and ends the stream before it.
    func stream(_ calls: Calls = Calls()) -> AsyncStream<LateReply> {
        let (number, before) = state.withLock { state in
            state.reader += 1
            return (state.reader, state.waiter.take())
        }
        before?.resume(returning: nil)
        let reading = LateReplyReading(self, number, calls)
        return AsyncStream(unfolding: { await reading.next() })
    }

    fileprivate func next(for number: Int) async -> LateReply? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: LateReply?? = state.withLock { state in
                    guard state.reader == number, !Task.isCancelled else { return .some(nil) }
                    if !state.waiting.isEmpty { return .some(state.waiting.removeFirst()) }
                    state.waiter = continuation
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.reader == number ? $0.waiter.take() : nil }
            waiter?.resume(returning: nil)
        }
    }
}

extension LateReplies {
    fileprivate func isPresent(_ reader: Int) -> Bool { state.withLock { $0.reader == reader } }

    /// Returns a result that a cancelled or replaced reader did not receive. The present reader receives it next.
    fileprivate func requeue(_ reply: LateReply) {
        let waiter = state.withLock { state -> CheckedContinuation<LateReply?, Never>? in
            guard !state.waiting.contains(where: { $0.id == reply.id }) else { return nil }
            if let waiter = state.waiter.take() { return waiter }
            state.waiting.insert(reply, at: 0)
            return nil
        }
        waiter?.resume(returning: reply)
    }
}

/// The position of one iteration in the late results. The stream releases it when the iteration ends.
private final class LateReplyReading: Sendable {
    private let replies: LateReplies
    private let number: Int
    private let calls: LateReplies.Calls
    /// The request whose result the reader received last.
    private let present = Mutex<String?>(nil)

    init(_ replies: LateReplies, _ number: Int, _ calls: LateReplies.Calls) {
        self.replies = replies
        self.number = number
        self.calls = calls
    }

    func next() async -> LateReply? {
        endPresent()
        while let reply = await replies.next(for: number) {
            guard await calls.begins(reply.id) else { continue }
            guard replies.isPresent(number), !Task.isCancelled else {
                await calls.notDelivered(reply.id)
                replies.requeue(reply)
                return nil
            }
            present.withLock { $0 = reply.id }
            return reply
        }
        return nil
    }

    private func endPresent() {
        if let id = present.withLock({ $0.take() }) { calls.ended(id) }
    }

    deinit { endPresent() }
}
