import CarillonMessages
import CarillonWire
import NIOCore
import NIOPosix
import Synchronization

/// The device's subscriptions: those that the app passed to the client, and all others that the server has for the device.
///
/// The client requests them after the first use of this object. They are known when ``PushDeviceEvent/subscriptionsUpdated`` was
/// reported.
public final class NotificationSubscriptions: Sendable {
    /// Selects subscriptions by their status.
    public enum Filter: Sendable {
        /// All subscriptions on the server.
        case all
        /// The subscriptions whose condition the server evaluates.
        case subscribed
        /// The subscriptions that fired with the policy `once`.
        case triggered

        fileprivate var own: SubscriptionsMachine.Filter {
            switch self {
            case .all: .all
            case .subscribed: .status(.subscribed)
            case .triggered: .status(.triggered)
            }
        }
    }

    private struct State {
        var machine = SubscriptionsMachine()
        var objects: [Int: NotificationSubscription] = [:]

        func number(of subscription: NotificationSubscription) -> Int? {
            objects.first { $0.value === subscription }?.key
        }
    }

    private let state = Mutex(State())
    private let send: @Sendable (ClientFrame.Request) -> Void
    private let notify: @Sendable ([PushDeviceEvent]) -> Void
    private let connect: @Sendable () -> Void
    private let shared: SharedFolder?

    /// - Parameters:
    ///   - send: Sends a request on the live session. ``disconnected()`` reports that the connection and its pending request are
    ///     lost.
    ///   - connect: Registers the device, if it is not registered.
    ///   - shared: The folder with the keys of private formats.
    init(
        shared: SharedFolder? = nil, send: @escaping @Sendable (ClientFrame.Request) -> Void,
        notify: @escaping @Sendable ([PushDeviceEvent]) -> Void,
        connect: @escaping @Sendable () -> Void = {}
    ) {
        self.send = send
        self.notify = notify
        self.connect = connect
        self.shared = shared
    }

    // MARK: Changes

    /// Passes a subscription to the client, which sends it to the server now or at the next connection. The result is reported to
    /// its listeners.
    ///
    /// - Throws: ``PushError`` with ``PushError/Code/triggerInvalid``, ``PushError/Code/subscriptionInvalid`` or
    ///   ``PushError/Code/alreadySubscribed``; nothing has changed then.
    public func subscribe(_ subscription: NotificationSubscription) throws(PushError) {
        let definition = try checked(subscription.present.definition)
        try perform { state throws(PushError) in
            guard state.number(of: subscription) == nil else { throw Self.alreadySubscribed }
            let (number, actions) = state.machine.subscribed(definition)
            state.objects[number] = subscription
            return actions
        }
    }

    /// Sets all subscriptions with a key that the device has. The library sends the difference: missing and different
    /// subscriptions are made or changed, subscriptions of the server with other keys are removed, and those without a key stay.
    ///
    /// - Throws: The errors of ``subscribe(_:)``, and ``PushError`` with ``PushError/Code/subscriptionInvalid`` if a subscription
    ///   has no key or two have the same key; nothing has changed then.
    public func declare(_ subscriptions: [NotificationSubscription]) throws(PushError) {
        var keys: Set<String> = []
        var definitions: [SubscriptionDefinition] = []
        for subscription in subscriptions {
            let definition = try checked(subscription.present.definition)
            definitions.append(definition)
            guard let key = definition.key, keys.insert(key).inserted else {
                throw PushError(.subscriptionInvalid, "Each subscription of a declared set needs a key of its own.")
            }
        }
        try perform { state throws(PushError) in
            var actions: [SubscriptionsMachine.Action] = []
            // Subscriptions that were passed to the client before are declared again.
            for subscription in subscriptions {
                if let number = state.number(of: subscription) {
                    state.machine.dropped(number)
                    state.objects[number] = nil
                }
            }
            let (numbers, declared) = state.machine.declared(definitions)
            for (number, subscription) in zip(numbers, subscriptions) { state.objects[number] = subscription }
            actions += declared
            return actions
        }
    }

    /// Removes a subscription.
    /// - Throws: ``PushError`` with ``PushError/Code/notSubscribed``.
    public func unsubscribe(_ subscription: NotificationSubscription) throws(PushError) {
        try perform { state throws(PushError) in
            guard let number = state.number(of: subscription) else { throw Self.notSubscribed }
            return state.machine.unsubscribed(number)
        }
    }

    /// Removes many subscriptions: all of the device's on the server, those with the status triggered, or those with the status
    /// subscribed.
    public func unsubscribeAll(_ filter: Filter = .all) {
        perform { state in state.machine.requested() + state.machine.unsubscribedMany(filter.own) }
    }

    /// Changes the condition. If the subscription is active, the server is notified, and evaluates the condition anew. If several
    /// changes wait, the last one counts.
    ///
    /// - Parameters:
    ///   - subscription: An active or inactive subscription.
    ///   - trigger: Nil fires with each update.
    /// - Throws: ``PushError`` with ``PushError/Code/triggerInvalid``.
    public func change(_ subscription: NotificationSubscription, trigger: String?) throws(PushError) {
        if let trigger { try SubscriptionDefinition.check(trigger, over: subscription.fields) }
        try change(subscription, .trigger) { definition in
            definition.trigger = trigger
            if trigger == nil, definition.policy == .once { definition.policy = .every(coolDown: .zero) }
        }
    }

    /// Changes the notification. If the subscription is active, the server is notified, and evaluates the condition anew. If
    /// several changes wait, the last one counts.
    /// - Throws: ``PushError`` with ``PushError/Code/subscriptionInvalid``.
    public func change(_ subscription: NotificationSubscription, format: NotificationFormat) throws(PushError) {
        try change(subscription, .format) { $0.format = format }
    }

    private func change(
        _ subscription: NotificationSubscription, _ change: SubscriptionsMachine.Change,
        _ edit: (inout SubscriptionDefinition) -> Void
    ) throws(PushError) {
        try perform { state throws(PushError) in
            var present = subscription.present
            edit(&present.definition)
            let definition = try checked(present.definition)
            present.definition = definition
            subscription.set(present)
            guard let number = state.number(of: subscription) else { return [] }
            return state.machine.changed(number, change, definition)
        }
    }

    /// Returns the definition that is sent, with the device's keys if its format is private.
    private func checked(_ definition: SubscriptionDefinition) throws(PushError) -> SubscriptionDefinition {
        var definition = definition
        if definition.format.isPrivate {
            guard let shared else {
                throw PushError(
                    .subscriptionInvalid,
                    "A private format needs PushClient.Configuration.sharedDirectory, in which the app's extension finds the keys."
                )
            }
            do {
                let keys = try shared.loadOrCreateKeys()
                definition.format = definition.format.sealed(
                    for: PrivateKeys(publicKey: keys.publicKey, authSecret: keys.authSecret))
            } catch {
                throw PushError(
                    .subscriptionInvalid, "The keys of private formats cannot be read or written now.", cause: error)
            }
        }
        try definition.check()
        return definition
    }

    private static let alreadySubscribed = PushError(.alreadySubscribed, "The subscription was given to the client already.")
    private static let notSubscribed = PushError(.notSubscribed, "The subscription was not given to this client.")

    // MARK: State

    /// Requests the present subscriptions from the server. ``PushDeviceEvent/subscriptionsUpdated`` is reported when they are
    /// known. Without a connection the request is sent at the next one, as at each connection.
    public func refresh() { perform { $0.machine.refreshed() } }

    /// Returns the subscriptions on the server, one object for each: the app's own object if the app made it.
    public func all(_ filter: Filter = .all) -> [NotificationSubscription] {
        state.withLock { state in
            state.objects.sorted { $0.key < $1.key }.map(\.value).filter { filter.own.matches($0.status) }
        }
    }

    /// Returns the subscription with an id of the server.
    public func find(id: String) -> NotificationSubscription? { all().first { $0.subscriptionID == id } }

    /// Returns the subscription with a key of the app.
    public func find(key: String) -> NotificationSubscription? { all().first { $0.key == key } }

    // MARK: The session

    func requested() { perform { $0.machine.requested() } }
    func connected(version: Int, isRestored: Bool = false) {
        perform { $0.machine.connected(version: version, isRestored: isRestored) }
    }
    func disconnected() { perform { $0.machine.disconnected() } }
    func deviceLost() { perform { $0.machine.deviceLost() } }
    func signedOut() { perform { $0.machine.signedOut() } }
    func answered(_ answer: ServerFrame.Answer) { perform { $0.machine.answered(answer) } }
    /// - Parameters:
    ///   - isNotified: Whether listeners receive ``NotificationSubscriptionEvent/triggered``. The status changes in any case.
    ///   - start: Surrounds the calls of the subscription's delegates.
    func fired(_ id: String, at milliseconds: Int64, isNotified: Bool = true, start: DelegateStart? = nil) {
        perform(start: start) { $0.machine.fired(id, at: milliseconds, isNotified: isNotified) }
    }

    // MARK: Actions of the machine

    /// Changes the state and performs the actions under one lock, so that events are reported in their order.
    private func perform<Fault: Error>(
        start: DelegateStart? = nil,
        _ change: (inout State) throws(Fault) -> [SubscriptionsMachine.Action]
    ) throws(Fault) {
        let result: Result<Void, Fault> = state.withLock { state in
            do throws(Fault) {
                for action in try change(&state) { perform(action, start, &state) }
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    private func perform(_ action: SubscriptionsMachine.Action, _ start: DelegateStart?, _ state: inout State) {
        switch action {
        case .send(let request): send(request)
        case .notify(let number, let entry, let events):
            guard let object = state.objects[number] else { return }
            object.set(.init(entry))
            object.listeners.notify(events, start: start)
        case .found(let number, let entry): state.objects[number] = NotificationSubscription(.init(entry))
        case .removed(let number): state.objects[number] = nil
        case .listed: notify([.subscriptionsUpdated])
        case .connect: connect()
        case .wait(let seconds):
            MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: .seconds(Int64(seconds))) { [weak self] in
                self?.perform { $0.machine.timePassed() }
            }
        }
    }
}

extension NotificationSubscription.State {
    fileprivate init(_ entry: SubscriptionsMachine.Entry) {
        self.init(
            definition: entry.definition, status: entry.status, statusAt: entry.statusAt, id: entry.id,
            actual: entry.actual)
    }
}
