import CarillonWire
import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A device's standing order: the server watches items, and notifies the device when a condition comes true, also while the app does not
/// run.
///
/// ```swift
/// let alert = NotificationSubscription(
///     items: ["stock.ACME"], fields: ["price"], format: NotificationFormat(title: "ACME", body: "at ${price}"),
///     trigger: "price > 100.0", key: "acme-above-100")
/// try client.device.subscriptions.subscribe(alert)
/// ```
///
/// Items, fields and mode stay as they are while it is active; format and trigger may change.
public final class NotificationSubscription: Sendable {
    /// What an update that does not name a field says of it.
    public enum Mode: String, Sendable {
        /// It keeps its value.
        case merge
        /// It has none.
        case distinct
    }

    /// When it fires.
    public enum Policy: Hashable, Sendable {
        /// Where the trigger holds; it is ``NotificationSubscription/Status/triggered`` then, until it is changed or removed.
        case once
        /// Where the trigger holds and did not before. A trigger that holds when the subscription is made or changed is no crossing.
        case everyCrossing
        /// With each update at which the trigger holds, but not within the cool-down after the last, in seconds.
        case every(coolDown: Duration)
        /// One of a newer server.
        case unknown
    }

    /// What became of it.
    public enum Status: String, Sendable, CaseIterable {
        /// It was not given to the server, or is gone there.
        case unknown
        /// It was given to the client: it is on its way, or waits for the device to be registered.
        case active
        /// The server watches.
        case subscribed
        /// It fired once and for all.
        case triggered
    }

    /// A property that the server changed, or that could not be changed.
    public enum Property: String, Sendable, CaseIterable {
        case mode, items, fields, notificationFormat, triggerExpression, policy, requestedMaxFrequency, requestedBufferSize
        case tags, expiresAt, statusTimestamp
    }

    struct State: Sendable {
        var definition: SubscriptionDefinition
        var status = Status.unknown
        var statusAt: Int64?
        var id: String?
        /// The server's view.
        var actual: SubscriptionDefinition?
    }

    private let state: Mutex<State>
    let listeners = NotificationSubscriptionListeners()

    /// Makes one; nothing is sent before it is given to ``NotificationSubscriptions/subscribe(_:)``.
    ///
    /// - Parameters:
    ///   - items: 1 to 100; each is watched for itself, and they share one status.
    ///   - fields: That the trigger and the format speak of.
    ///   - format: What is shown.
    ///   - trigger: The condition, in the language of `CarillonExpression`; nil fires with each update.
    ///   - policy: When it fires; nil is `once` with a trigger, and with each update without one.
    ///   - requestedMaxFrequency: Firings of an item a second at the most, 0.00001 to 1,000, such as 0.5 for one in two seconds; nil leaves it to
    ///     of each at once. It says nothing of a policy that fires once.
    ///   - requestedBufferSize: How many firings of an item wait for that, 1 to 100, of which the newest stay; nil is 1 where the item
    ///     merges, and 100 where its updates are distinct.
    ///   - mode: Refused where an item has another; nil takes either.
    ///   - key: The app's own name for it. Of each the device has one: the same again changes it, or does nothing where nothing
    ///     differs.
    ///   - tags: Words to find it by, 16 at most.
    ///   - expiresAt: When it ends; nil keeps it.
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

    /// Another one that says the same, and is not given to the server yet.
    public init(copying other: NotificationSubscription) {
        state = Mutex(State(definition: other.state.withLock { $0.definition }))
    }

    init(_ state: State) { self.state = Mutex(state) }

    var present: State { state.withLock { $0 } }
    func set(_ new: State) { state.withLock { $0 = new } }

    // MARK: What it says

    /// The items that are watched.
    public var items: [String] { present.definition.items }
    /// The fields that the trigger and the format speak of.
    public var fields: [String] { present.definition.fields }
    /// The mode that the items must have.
    public var mode: Mode? { present.definition.mode }
    /// The app's own name for it.
    public var key: String? { present.definition.key }
    /// Words to find it by.
    public var tags: [String] { present.definition.tags }
    /// When it ends.
    public var expiresAt: Date? { present.definition.expiresAt }
    /// When it fires.
    public var policy: Policy { present.definition.policy }
    /// Firings of an item a second at the most.
    public var requestedMaxFrequency: Double? { present.definition.maxFrequency }
    /// How many firings of an item wait for that.
    public var requestedBufferSize: Int? { present.definition.bufferSize }
    /// What is shown, as the app said it last; ``NotificationSubscriptions/change(_:format:)`` changes it.
    public var notificationFormat: NotificationFormat { present.definition.format }
    /// The condition, as the app said it last; ``NotificationSubscriptions/change(_:trigger:)`` changes it.
    public var triggerExpression: String? { present.definition.trigger }

    // MARK: What the server says

    /// What became of it.
    public var status: Status { present.status }
    /// Since when, by the server's clock.
    public var statusTimestamp: Date? {
        present.statusAt.map { Date(timeIntervalSince1970: TimeInterval($0) / 1000) }
    }
    /// The server's name for it: 32 hexadecimal digits; nil before it is subscribed.
    public var subscriptionID: String? { present.id }
    /// What is shown, as the server has it.
    public var actualNotificationFormat: NotificationFormat? { present.actual?.format }
    /// The condition, as the server has it.
    public var actualTriggerExpression: String? { present.actual?.trigger }
    /// Whether it was given to the client, and is not gone.
    public var isActive: Bool { status != .unknown }
    /// Whether the server watches: it is subscribed, or triggered.
    public var isSubscribed: Bool { status == .subscribed || status == .triggered }
    /// Whether it fired once and for all.
    public var isTriggered: Bool { status == .triggered }

    // MARK: Listening

    /// What happens to it from now on. Any number of iterations may go on at once; each has all that happened since it began. For a slow one
    /// the newest 100 events wait, after ``NotificationSubscriptionEvent/missed(_:)`` where older ones were dropped.
    public var events: NotificationSubscriptionEvents { NotificationSubscriptionEvents(listeners: listeners) }
    /// Has a delegate called for what happens. It is kept weakly; one that is there already is not added again.
    public func addDelegate(_ delegate: any NotificationSubscriptionDelegate) { listeners.add(delegate, to: self) }
    /// Has a delegate called no more.
    public func removeDelegate(_ delegate: any NotificationSubscriptionDelegate) { listeners.remove(delegate, from: self) }
    /// The delegates that live, in the order in which they were added.
    public var delegates: [any NotificationSubscriptionDelegate] { listeners.delegates }
}
