import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A firing of a subscription while the device was connected.
public struct SubscriptionFiring: Equatable, Sendable {
    /// The id of the firing on the server. The id of its push is a hash of this.
    public let id: String
    /// The id of the subscription on the server.
    public let subscriptionID: String
    /// The key of the subscription in the app; nil if the subscription has no key.
    public let key: String?
    /// The item whose update caused the firing.
    public let item: String
    /// The time of the update, by the server's clock.
    public let updatedAt: Date
    /// The notification to show, with all placeholders replaced.
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

/// The firings of subscriptions while the device is connected, which the app shows itself; see
/// ``PushClient/Configuration/receivesFirings``.
///
/// A firing counts as handled when the loop requests the next one; then its push is not sent, or withdrawn. A firing that was not
/// handled is delivered again at the next connection. With several iterations each firing is delivered to one.
///
/// When the device gets another user or signs out, the loop does not receive the waiting firings. After the app set another user,
/// the loop receives no firing until the server has answered.
///
/// The app does not receive a firing again after the process ended ten times while the app handled it: before the loop requested
/// the next one, or during calls of ``NotificationSubscriptionDelegate``. The server receives the code 301, handler failed, and
/// the app receives ``PushDeviceEvent/firingCrashed(_:)``. The status of the subscription changes;
/// ``NotificationSubscriptionDelegate/didTrigger(_:)`` is not called. The end of the client, and the end of an iteration by
/// `break`, an error or cancellation, do not count.
///
/// The server sends up to 64 messages and firings that were not handled (its setting `window-envelopes`), and messages of
/// channels wait behind them: read firings at once. The library keeps up to 1,000 of them and 8 MiB, also if the server allows
/// more. A firing beyond that is not kept: the server sends it again at the next connection, and nothing is lost.
public struct SubscriptionFirings: AsyncSequence, Sendable {
    public typealias Element = SubscriptionFiring
    public typealias Failure = Never

    let queue: FiringQueue

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator { Iterator(queue: queue) }

    /// The position of one reader in the firings.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = SubscriptionFiring
        public typealias Failure = Never

        private let reading: FiringReading

        init(queue: FiringQueue) { reading = FiringReading(queue) }

        /// Marks the firing before as handled, and waits for the next one. Returns nil when the task is cancelled, or the client
        /// stops.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> SubscriptionFiring? {
            await reading.next()
        }
    }
}
