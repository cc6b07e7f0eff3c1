import CarillonBasics
import CarillonWire
import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A subscription fired while the device was connected.
public struct SubscriptionFiring: Equatable, Sendable {
    /// The server's name for this firing; that of the push is a hash of it.
    public let id: String
    /// The server's name for the subscription.
    public let subscriptionID: String
    /// The app's own name for it.
    public let key: String?
    /// The item whose update it was.
    public let item: String
    /// When it was updated, by the server's clock.
    public let updatedAt: Date
    /// What is to be shown, with all placeholders filled in.
    public let notification: NotificationFormat

    let milliseconds: Int64

    init?(_ frame: FiredFrame) {
        guard let fired = JSONValue(parsing: frame.body).flatMap(FiredNotification.init) else { return nil }
        id = frame.version
        subscriptionID = fired.subscription.description
        key = fired.key
        item = fired.item
        milliseconds = fired.at
        updatedAt = Date(timeIntervalSince1970: Double(fired.at) / 1000)
        notification = NotificationFormat(json: fired.notification)
    }
}

/// What fires while the device is connected, for the app to show; see ``PushClient/Configuration/receivesFirings``.
///
/// A firing counts as received when the loop asks for the next one; then its push is not sent, or taken back. One that was not
/// received comes again at the next connection. Of several iterations each firing goes to one.
///
/// The server sends up to 64 messages and firings that were not received (its setting `window-envelopes`), and messages of channels wait
/// behind them: read firings at once. The library keeps up to 1,000 of them, also when the server allows more. A firing beyond that is not
/// received: it comes again at the next connection, and nothing is lost.
public struct SubscriptionFirings: AsyncSequence, Sendable {
    public typealias Element = SubscriptionFiring
    public typealias Failure = Never

    let queue: FiringQueue

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator { Iterator(queue: queue) }

    /// One reader's place in the firings.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = SubscriptionFiring
        public typealias Failure = Never

        let queue: FiringQueue
        private var present: SubscriptionFiring?

        init(queue: FiringQueue) { self.queue = queue }

        /// The firing before it counts as received. Waits for the next one; nil when the task is cancelled, or the client stops.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> SubscriptionFiring? {
            if let present { queue.handled(present) }
            present = nil
            present = await queue.next()
            return present
        }
    }
}

/// Firings that wait for the app. The server gives no more than its window while they are not answered for.
final class FiringQueue: Sendable {
    private struct State {
        var waiting: [SubscriptionFiring] = []
        /// Given to the app, which is not done with them.
        var inHand: Set<String> = []
        var readers: [(number: Int, continuation: CheckedContinuation<SubscriptionFiring?, Never>)] = []
        var lastReader = 0
    }

    /// How many firings wait, or are with the app, at most.
    static let limit = 1000

    private let state = Mutex(State())
    private let onHandled: @Sendable (SubscriptionFiring) -> Void

    init(onHandled: @escaping @Sendable (SubscriptionFiring) -> Void) { self.onHandled = onHandled }

    func handled(_ firing: SubscriptionFiring) {
        state.withLock { _ = $0.inHand.remove(firing.id) }
        onHandled(firing)
    }

    /// Answers whether it was taken. What the app has, or is to have, may come again with another connection, and is not taken; nor is what is
    /// beyond the limit, which stays unanswered.
    @discardableResult func add(_ firing: SubscriptionFiring) -> Bool {
        let (isNew, reader) = state.withLock { state -> (Bool, CheckedContinuation<SubscriptionFiring?, Never>?) in
            guard !state.inHand.contains(firing.id), !state.waiting.contains(where: { $0.id == firing.id }) else {
                return (false, nil)
            }
            guard state.waiting.count + state.inHand.count < Self.limit else { return (false, nil) }
            guard !state.readers.isEmpty else {
                state.waiting.append(firing)
                return (true, nil)
            }
            state.inHand.insert(firing.id)
            return (true, state.readers.removeFirst().continuation)
        }
        reader?.resume(returning: firing)
        return isNew
    }

    /// Whether an iteration waits.
    var isAwaited: Bool { state.withLock { !$0.readers.isEmpty } }

    /// Ends the iterations that wait.
    func endIterations() {
        let readers = state.withLock { state in
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.continuation.resume(returning: nil) }
    }

    /// What waits comes again with the next connection.
    func disconnected() { state.withLock { $0.waiting = [] } }

    func next() async -> SubscriptionFiring? {
        let number = state.withLock { state in
            state.lastReader += 1
            return state.lastReader
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: SubscriptionFiring?? = state.withLock { state in
                    if Task.isCancelled { return .some(nil) }
                    if !state.waiting.isEmpty {
                        let firing = state.waiting.removeFirst()
                        state.inHand.insert(firing.id)
                        return .some(firing)
                    }
                    state.readers.append((number, continuation))
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            let reader = state.withLock { state -> CheckedContinuation<SubscriptionFiring?, Never>? in
                guard let place = state.readers.firstIndex(where: { $0.number == number }) else { return nil }
                return state.readers.remove(at: place).continuation
            }
            reader?.resume(returning: nil)
        }
    }
}
