import CarillonWire
import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A subscription of the device on items: the server evaluates a condition, and notifies the device when the condition becomes
/// true, also while the app is not running.
///
/// ```swift
/// let alert = NotificationSubscription(
///     items: ["stock.ACME"], fields: ["price"], format: NotificationFormat(title: "ACME", body: "at ${price}"),
///     trigger: "price > 100.0", key: "acme-above-100")
/// try client.device.subscriptions.subscribe(alert)
/// ```
///
/// Items, fields and mode cannot change while the subscription is active. Format and trigger can.
public final class NotificationSubscription: Sendable {
    /// The meaning of a field that an update leaves out.
    public enum Mode: String, Sendable {
        /// The field keeps its value.
        case merge
        /// The field has no value.
        case distinct
    }

    /// When the subscription fires.
    public enum Policy: Hashable, Sendable {
        /// When the trigger is true for the first time. The status is ``NotificationSubscription/Status/triggered`` then, until
        /// the subscription is changed or removed.
        case once
        /// When the trigger becomes true. A trigger that is true when the subscription is made or changed does not fire.
        case everyCrossing
        /// With each update for which the trigger is true, but not within the cool-down after the last firing, in seconds.
        case every(coolDown: Duration)
        /// A policy of a newer server.
        case unknown
    }

    /// The status of the subscription.
    public enum Status: String, Sendable, CaseIterable {
        /// The subscription was not passed to the client, or does not exist on the server any more.
        case unknown
        /// The subscription was passed to the client. It is being sent, or waits for the registration of the device.
        case active
        /// The server evaluates the condition.
        case subscribed
        /// The subscription fired with the policy `once`.
        case triggered
    }

    /// A property that the server changed, or whose change it rejected.
    public enum Property: String, Sendable, CaseIterable {
        case mode, items, fields, notificationFormat, triggerExpression, policy, requestedMaxFrequency, requestedBufferSize
        case tags, expiresAt, statusTimestamp
    }

    struct State: Sendable {
        var definition: SubscriptionDefinition
        var status = Status.unknown
        var statusAt: Int64?
        var id: String?
        /// The definition that the server reported; nil before.
        var actual: SubscriptionDefinition?
    }

    private let state: Mutex<State>
    let listeners = NotificationSubscriptionListeners()

    /// Makes a subscription. Nothing is sent before it is passed to ``NotificationSubscriptions/subscribe(_:)``.
    ///
    /// - Parameters:
    ///   - items: 1 to 100 names of items. Each item is evaluated separately, and all share one status.
    ///   - fields: The fields that the trigger and the format use.
    ///   - format: The notification that is shown.
    ///   - trigger: The condition, in the language of `CarillonExpression`; nil fires with each update.
    ///   - policy: When the subscription fires; nil is `once` with a trigger, and with each update without one.
    ///   - requestedMaxFrequency: The most firings of an item per second, 0.00001 to 1,000, such as 0.5 for one in two seconds;
    ///     nil sets no limit. It has no effect on a policy that fires once.
    ///   - requestedBufferSize: The most firings of an item that wait because of the frequency, 1 to 100, of which the newest are
    ///     kept; nil is 1 for items with the mode merge, and 100 for items with the mode distinct.
    ///   - mode: The mode that the items must have, or else the server rejects the subscription; nil accepts either mode.
    ///   - key: The app's own name for the subscription. A device has one subscription for each key: another one with the same
    ///     key changes it, or does nothing if they are equal.
    ///   - tags: Up to 16 words by which the subscription can be found.
    ///   - expiresAt: When the subscription ends; nil if it does not end.
    public init(
        items: [String], fields: [String], format: NotificationFormat, trigger: String? = nil, policy: Policy? = nil,
        requestedMaxFrequency: Double? = nil, requestedBufferSize: Int? = nil, mode: Mode? = nil, key: String? = nil,
        tags: [String] = [], expiresAt: Date? = nil
    ) {
        state = Mutex(
            State(
                definition: SubscriptionDefinition(
                    items: items, fields: fields, mode: mode, trigger: trigger, format: format,
                    policy: policy ?? (trigger == nil ? .every(coolDown: .zero) : .once),
                    maxFrequency: requestedMaxFrequency, bufferSize: requestedBufferSize, key: key, tags: tags,
                    expiresAt: expiresAt)))
    }

    /// Makes a subscription with the same definition that is not passed to the client yet.
    public init(copying other: NotificationSubscription) {
        state = Mutex(State(definition: other.state.withLock { $0.definition }))
    }

    init(_ state: State) { self.state = Mutex(state) }

    var present: State { state.withLock { $0 } }
    func set(_ new: State) { state.withLock { $0 = new } }

    // MARK: Definition

    /// The items whose updates are evaluated.
    public var items: [String] { present.definition.items }
    /// The fields that the trigger and the format use.
    public var fields: [String] { present.definition.fields }
    /// The mode that the items must have; nil accepts either mode.
    public var mode: Mode? { present.definition.mode }
    /// The app's own name for the subscription.
    public var key: String? { present.definition.key }
    /// The words by which the subscription can be found.
    public var tags: [String] { present.definition.tags }
    /// When the subscription ends; nil if it does not end.
    public var expiresAt: Date? { present.definition.expiresAt }
    /// When the subscription fires.
    public var policy: Policy { present.definition.policy }
    /// The most firings of an item per second.
    public var requestedMaxFrequency: Double? { present.definition.maxFrequency }
    /// The most firings of an item that wait because of the frequency.
    public var requestedBufferSize: Int? { present.definition.bufferSize }
    /// The notification that is shown, as the app set it last; ``NotificationSubscriptions/change(_:format:)`` changes it.
    public var notificationFormat: NotificationFormat { present.definition.format }
    /// The condition, as the app set it last; ``NotificationSubscriptions/change(_:trigger:)`` changes it.
    public var triggerExpression: String? { present.definition.trigger }

    // MARK: Reports of the server

    /// The status of the subscription.
    public var status: Status { present.status }
    /// When the status began, by the server's clock.
    public var statusTimestamp: Date? {
        present.statusAt.map { Date(timeIntervalSince1970: TimeInterval($0) / 1000) }
    }
    /// The subscription's id on the server: 32 hexadecimal digits; nil before it is subscribed.
    public var subscriptionID: String? { present.id }
    /// The notification that is shown, as the server reported it.
    public var actualNotificationFormat: NotificationFormat? { present.actual?.format }
    /// The condition, as the server reported it.
    public var actualTriggerExpression: String? { present.actual?.trigger }
    /// Whether the subscription was passed to the client, and has not ended.
    public var isActive: Bool { status != .unknown }
    /// Whether the server has the subscription: the status is subscribed or triggered.
    public var isSubscribed: Bool { status == .subscribed || status == .triggered }
    /// Whether the subscription fired with the policy `once`.
    public var isTriggered: Bool { status == .triggered }

    // MARK: Events

    /// The events of the subscription from now on. Any number of iterations can run at once. Each receives all events since it
    /// began. For a slow iteration the newest 100 events wait, after ``NotificationSubscriptionEvent/missed(_:)`` if older ones
    /// were dropped.
    public var events: NotificationSubscriptionEvents { NotificationSubscriptionEvents(listeners: listeners) }
    /// Adds a delegate for the events of the subscription. The delegate is referenced weakly. If it was added already, nothing
    /// changes.
    public func addDelegate(_ delegate: any NotificationSubscriptionDelegate) { listeners.add(delegate, to: self) }
    /// Removes a delegate.
    public func removeDelegate(_ delegate: any NotificationSubscriptionDelegate) { listeners.remove(delegate, from: self) }
    /// The delegates that still exist, in the order in which they were added.
    public var delegates: [any NotificationSubscriptionDelegate] { listeners.delegates }
}
