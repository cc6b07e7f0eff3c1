import Synchronization

/// The result of a request that was made by an earlier run of the app, or by a task that did not wait for it.
public struct LateReply: Sendable {
    /// The request's.
    public let id: String
    public let provider: ServiceApplication
    public let method: ServiceMethod
    public let result: Result<ServiceReply, ServiceError>
    let done: @Sendable () async -> Void

    /// Confirms that the app has the result. Until then it comes again in each run, for up to seven days: see ``ServiceClient/replies``.
    public func confirm() async { await done() }
}

/// The results that nobody read yet, for one reader at a time. The store limits their number and size.
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

    /// What is done with results that the reader is given.
    struct Calls: Sendable {
        /// Called before the reader is given a result, with the id of its request. Returns false for a result that the reader is not given.
        var begins: @Sendable (String) async -> Bool = { _ in true }
        /// The reader asks for the next result, or its iteration ended.
        var ended: @Sendable (String) -> Void = { _ in }
        /// The reader is not given a result after ``begins``: another reader can be.
        var gaveBack: @Sendable (String) async -> Void = { _ in }
    }

    /// Ends the stream before it.
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

    /// A reader that was cancelled or replaced did not get a result: the present reader is the next to get it.
    fileprivate func giveBack(_ reply: LateReply) {
        let waiter = state.withLock { state -> CheckedContinuation<LateReply?, Never>? in
            guard !state.waiting.contains(where: { $0.id == reply.id }) else { return nil }
            if let waiter = state.waiter.take() { return waiter }
            state.waiting.insert(reply, at: 0)
            return nil
        }
        waiter?.resume(returning: reply)
    }
}

/// The place of one iteration in the results that nobody waits for. The stream releases it when the iteration ends.
private final class LateReplyReading: Sendable {
    private let replies: LateReplies
    private let number: Int
    private let calls: LateReplies.Calls
    /// The request whose result the reader was given last.
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
                await calls.gaveBack(reply.id)
                replies.giveBack(reply)
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
