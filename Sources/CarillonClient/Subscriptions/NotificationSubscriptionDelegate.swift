/// Receives the events of a ``NotificationSubscription``: one call at a time, in the order of the events, on no particular
/// thread. A change of status is reported before the event with its reason. A failed subscription is reported before the status
/// becomes unknown.
public protocol NotificationSubscriptionDelegate: AnyObject, Sendable {
    /// The delegate was added.
    func didAddDelegate(to subscription: NotificationSubscription)
    /// The delegate was removed. No call follows.
    func didRemoveDelegate(from subscription: NotificationSubscription)
    /// The server accepted the subscription.
    func didSubscribe(_ subscription: NotificationSubscription)
    /// The subscription ended: the app removed it, it expired, or its device or user was removed.
    func didUnsubscribe(_ subscription: NotificationSubscription)
    /// The subscription fired. It is called once for a firing in each run of the app. If the process ends during ten calls, the
    /// firing is not delivered to the app again: see ``SubscriptionFirings``.
    func didTrigger(_ subscription: NotificationSubscription)
    /// The server refused the subscription, or the connection ended before the server answered.
    func didFailSubscription(_ subscription: NotificationSubscription, _ error: PushError)
    /// The server refused to remove the subscription.
    func didFailUnsubscription(_ subscription: NotificationSubscription, _ error: PushError)
    /// The status changed.
    func didChangeStatus(of subscription: NotificationSubscription, to status: NotificationSubscription.Status)
    /// The server reported another value of a property.
    func didChangeProperty(_ property: NotificationSubscription.Property, of subscription: NotificationSubscription)
    /// The server refused the change of a property, and keeps the value before.
    func didFailModification(
        of property: NotificationSubscription.Property, of subscription: NotificationSubscription, _ error: PushError)
    /// Calls were dropped because the delegate did not return in time; `count` is their number. Up to 1,000 events wait for the delegates. The
    /// properties of ``NotificationSubscription`` have the present state.
    func didMissEvents(_ count: Int, of subscription: NotificationSubscription)
}

/// The default implementations do nothing, so that a delegate implements only the methods that it needs.
extension NotificationSubscriptionDelegate {
    public func didAddDelegate(to subscription: NotificationSubscription) {}
    public func didRemoveDelegate(from subscription: NotificationSubscription) {}
    public func didSubscribe(_ subscription: NotificationSubscription) {}
    public func didUnsubscribe(_ subscription: NotificationSubscription) {}
    public func didTrigger(_ subscription: NotificationSubscription) {}
    public func didFailSubscription(_ subscription: NotificationSubscription, _ error: PushError) {}
    public func didFailUnsubscription(_ subscription: NotificationSubscription, _ error: PushError) {}
    public func didChangeStatus(of subscription: NotificationSubscription, to status: NotificationSubscription.Status) {}
    public func didChangeProperty(_ property: NotificationSubscription.Property, of subscription: NotificationSubscription) {
    }
    public func didFailModification(
        of property: NotificationSubscription.Property, of subscription: NotificationSubscription, _ error: PushError
    ) {}
    public func didMissEvents(_ count: Int, of subscription: NotificationSubscription) {}
}

/// An event of a ``NotificationSubscription``.
///
/// Later versions of the library can add cases: keep a `default` in a `switch` over an event.
public enum NotificationSubscriptionEvent: Sendable {
    /// The number of events that were dropped because the iteration did not take them in time. It comes before the events that wait. The
    /// properties of ``NotificationSubscription`` have the present state.
    case missed(_ count: Int)
    /// The status changed. It comes before the event with the reason.
    case statusChanged(NotificationSubscription.Status)
    /// The server accepted the subscription.
    case subscribed
    /// The subscription ended: the app removed it, it expired, or its device or user was removed.
    case unsubscribed
    /// The subscription fired. Its listeners receive each firing once in each run of the app.
    case triggered
    /// The server refused the subscription, or the connection ended before the server answered.
    case subscriptionFailed(PushError)
    /// The server refused to remove the subscription.
    case unsubscriptionFailed(PushError)
    /// The server reported another value of a property.
    case propertyChanged(NotificationSubscription.Property)
    /// The server refused the change of a property.
    case modificationFailed(NotificationSubscription.Property, PushError)
}

extension NotificationSubscriptionEvent: Equatable {
    /// Errors are equal when their codes and messages are.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.missed(let one), .missed(let other)): one == other
        case (.statusChanged(let one), .statusChanged(let other)): one == other
        case (.subscribed, .subscribed), (.unsubscribed, .unsubscribed), (.triggered, .triggered): true
        case (.propertyChanged(let one), .propertyChanged(let other)): one == other
        case (.subscriptionFailed(let one), .subscriptionFailed(let other)),
            (.unsubscriptionFailed(let one), .unsubscriptionFailed(let other)):
            one.code == other.code && one.message == other.message
        case (.modificationFailed(let one, let first), .modificationFailed(let other, let second)):
            one == other && first.code == second.code && first.message == second.message
        default: false
        }
    }
}

/// The events of a subscription, from the beginning of each iteration on. An iteration ends when its task is cancelled or the
/// subscription is released.
///
/// Up to 100 events wait for a slow iteration. Beyond that the oldest event is dropped, and the next event is
/// ``NotificationSubscriptionEvent/missed(_:)``; the present state is in the properties of ``NotificationSubscription``.
public struct NotificationSubscriptionEvents: AsyncSequence, Sendable {
    public typealias Element = NotificationSubscriptionEvent
    public typealias Failure = Never

    let listeners: NotificationSubscriptionListeners

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator { Iterator(base: listeners.subscribe().makeAsyncIterator()) }

    /// The position of one reader in the events.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = NotificationSubscriptionEvent
        public typealias Failure = Never

        var base: AsyncStream<NotificationSubscriptionEvent>.Iterator

        /// Waits for the next event. Returns nil when the iteration ends.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async
            -> NotificationSubscriptionEvent?
        {
            await base.next(isolation: actor)
        }
    }
}
