import CarillonBasics
import CarillonWire

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
    /// The size of the firing as the server sent it.
    let bytes: Int

    init?(_ frame: FiredFrame) {
        guard let fired = JSONValue(parsing: frame.body).flatMap(FiredNotification.init) else { return nil }
        id = frame.version
        subscriptionID = fired.subscription.description
        key = fired.key
        item = fired.item
        milliseconds = fired.at
        bytes = frame.body.count
        updatedAt = Date(timeIntervalSince1970: Double(fired.at) / 1000)
        notification = NotificationFormat(json: fired.notification)
    }
}

/// What fires while the device is connected, for the app to show; see ``PushClient/Configuration/receivesFirings``.
///
/// A firing counts as received when the loop asks for the next one; then its push is not sent, or taken back. One that was not
/// received comes again at the next connection. Of several iterations each firing goes to one.
///
/// When the device gets another user or signs out, the loop does not receive the firings that wait. After the app named another user, the loop
/// receives no firing until the server has answered.
///
/// The app does not receive a firing again after the process ended ten times while the app handled the firing: before the loop asked for the
/// next one, or during calls of ``NotificationSubscriptionDelegate``. The server receives the code 301, handler failed, and the app receives
/// ``PushDeviceEvent/firingCrashed(_:)``. The status of the subscription changes; ``NotificationSubscriptionDelegate/didTrigger(_:)`` is not called.
/// The end of the client, and the end of an iteration by `break`, an error or cancellation, do not count.
///
/// The server sends up to 64 messages and firings that were not received (its setting `window-envelopes`), and messages of channels wait
/// behind them: read firings at once. The library keeps up to 1,000 of them and 8 MiB, also when the server allows more. A firing beyond that
/// is not received: it comes again at the next connection, and nothing is lost.
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

        private let reading: FiringReading

        init(queue: FiringQueue) { reading = FiringReading(queue) }

        /// The firing before it counts as received. Waits for the next one; nil when the task is cancelled, or the client stops.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> SubscriptionFiring? {
            await reading.next()
        }
    }
}
