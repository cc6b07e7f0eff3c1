/// Is called for what happens to a ``NotificationSubscription``: one call at a time, in the order in which it happened, on no particular
/// thread. A change of status is called before the event that says why, and a refusal before the status becomes unknown.
public protocol NotificationSubscriptionDelegate: AnyObject, Sendable {
    /// The delegate was added.
    func didAddDelegate(to subscription: NotificationSubscription)
    /// The delegate was removed; nothing is called after this.
    func didRemoveDelegate(from subscription: NotificationSubscription)
    /// The server watches.
    func didSubscribe(_ subscription: NotificationSubscription)
    /// It is gone: by the app's wish, as its time was over, or with its device or user.
    func didUnsubscribe(_ subscription: NotificationSubscription)
    /// The subscription fired. It is called once for a firing in each run of the app. If the process ends during ten calls, the firing is not
    /// given to the app again: see ``SubscriptionFirings``.
    func didTrigger(_ subscription: NotificationSubscription)
    /// The server refused it, or the connection ended before its answer.
    func didFailSubscription(_ subscription: NotificationSubscription, _ error: PushError)
    /// The server did not take it away.
    func didFailUnsubscription(_ subscription: NotificationSubscription, _ error: PushError)
    /// The status is another than before.
    func didChangeStatus(of subscription: NotificationSubscription, to status: NotificationSubscription.Status)
    /// The server says something else of a property.
    func didChangeProperty(_ property: NotificationSubscription.Property, of subscription: NotificationSubscription)
    /// The server refused the change of a property; it stays as it was there.
    func didFailModification(
        of property: NotificationSubscription.Property, of subscription: NotificationSubscription, _ error: PushError)
    /// Calls were dropped, as the delegate did not return in time; how many. Up to 1,000 events wait for the delegates. The properties of
    /// ``NotificationSubscription`` have the present state.
    func didMissEvents(_ count: Int, of subscription: NotificationSubscription)
}

/// Each does nothing, so that a delegate has only what it needs.
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

/// Something that happened to a ``NotificationSubscription``.
///
/// Later versions of the library can add cases: keep a `default` in a `switch` over an event.
public enum NotificationSubscriptionEvent: Sendable {
    /// Events were dropped, as the iteration did not take them in time; how many. It comes before the events that wait. The properties of
    /// ``NotificationSubscription`` have the present state.
    case missed(_ count: Int)
    /// The status is another than before. It comes before the event that says why.
    case statusChanged(NotificationSubscription.Status)
    /// The server watches.
    case subscribed
    /// It is gone.
    case unsubscribed
    /// It fired.
    case triggered
    /// The server refused it, or the connection ended before its answer.
    case subscriptionFailed(PushError)
    /// The server did not take it away.
    case unsubscriptionFailed(PushError)
    /// The server says something else of a property.
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

/// What happens to a subscription, from the beginning of each iteration on. An iteration ends when its task is cancelled or the
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

    /// One reader's place in the events.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = NotificationSubscriptionEvent
        public typealias Failure = Never

        var base: AsyncStream<NotificationSubscriptionEvent>.Iterator

        /// Waits for the next event; nil when the iteration ends.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async
            -> NotificationSubscriptionEvent?
        {
            await base.next(isolation: actor)
        }
    }
}
