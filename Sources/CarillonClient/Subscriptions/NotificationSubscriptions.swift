import CarillonMessages
import CarillonWire
import NIOCore
import NIOPosix
import Synchronization

/// The device's subscriptions: what the app gave to the client, and what else the server has of the device.
///
/// They are asked for once the app uses this; what the server has is known when ``PushDeviceEvent/subscriptionsUpdated`` was reported.
public final class NotificationSubscriptions: Sendable {
    /// Which are meant.
    public enum Filter: Sendable {
        /// All that the server has.
        case all
        /// Those that wait.
        case subscribed
        /// Those that fired once and for all.
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
    private let ask: @Sendable (ClientFrame.Request) -> Void
    private let notify: @Sendable ([PushDeviceEvent]) -> Void
    private let want: @Sendable () -> Void
    private let shared: SharedFolder?

    /// - Parameters:
    ///   - ask: Sends a request on the live session; one that is lost with it is known by ``disconnected()``.
    ///   - want: Has the device registered, if it is not.
    ///   - shared: Where the keys are of what is private.
    init(
        shared: SharedFolder? = nil, ask: @escaping @Sendable (ClientFrame.Request) -> Void,
        notify: @escaping @Sendable ([PushDeviceEvent]) -> Void,
        want: @escaping @Sendable () -> Void = {}
    ) {
        self.ask = ask
        self.notify = notify
        self.want = want
        self.shared = shared
    }

    // MARK: Giving

    /// Gives a subscription to the client, which sends it to the server now or at the next connection. What becomes of it is reported to
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

    /// Says which subscriptions with a key the device has. The library sends the difference: those that are missing or differ are
    /// made or changed, those of the server with other keys are removed, and those without a key stay.
    ///
    /// - Throws: As ``subscribe(_:)``, and where one has no key or a key is there twice; nothing has changed then.
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
            // Those that were given before are declared anew.
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

    /// Takes a subscription away.
    /// - Throws: ``PushError`` with ``PushError/Code/notSubscribed``.
    public func unsubscribe(_ subscription: NotificationSubscription) throws(PushError) {
        try perform { state throws(PushError) in
            guard let number = state.number(of: subscription) else { throw Self.notSubscribed }
            return state.machine.unsubscribed(number)
        }
    }

    /// Takes many away: all of the device's that the server has, or those that fired, or those that did not.
    public func unsubscribeAll(_ filter: Filter = .all) {
        perform { state in state.machine.wanted() + state.machine.unsubscribedMany(filter.own) }
    }

    /// Changes the condition. While it is active the server is notified, and arms it anew; of changes that wait, the last counts.
    ///
    /// - Parameters:
    ///   - subscription: Active or not.
    ///   - trigger: Nil fires with each update.
    /// - Throws: ``PushError`` with ``PushError/Code/triggerInvalid``.
    public func change(_ subscription: NotificationSubscription, trigger: String?) throws(PushError) {
        if let trigger { try SubscriptionDefinition.check(trigger, over: subscription.fields) }
        try change(subscription, .trigger) { definition in
            definition.trigger = trigger
            if trigger == nil, definition.policy == .once { definition.policy = .every(coolDown: .zero) }
        }
    }

    /// Changes what is shown. While it is active the server is notified, and arms it anew; of changes that wait, the last counts.
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

    /// As it is sent, with the device's keys where it is private.
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
                let keys = try shared.ownKeysMadeIfMissing()
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

    // MARK: Looking

    /// Asks the server what there is by now; ``PushDeviceEvent/subscriptionsUpdated`` is reported when it is known. Without a connection it
    /// is asked at the next one, as at each.
    public func refresh() { perform { $0.machine.refreshed() } }

    /// Those that the server has, one object for each: the app's own where it made it.
    public func all(_ filter: Filter = .all) -> [NotificationSubscription] {
        state.withLock { state in
            state.objects.sorted { $0.key < $1.key }.map(\.value).filter { filter.own.takes($0.status) }
        }
    }

    /// The one of the server's name.
    public func find(id: String) -> NotificationSubscription? { all().first { $0.subscriptionID == id } }

    /// The one of the app's own name.
    public func find(key: String) -> NotificationSubscription? { all().first { $0.key == key } }

    // MARK: The session

    func wanted() { perform { $0.machine.wanted() } }
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

    // MARK: What the machine says

    /// In one turn, so that what happened is reported in its order.
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
        case .ask(let request): ask(request)
        case .notify(let number, let entry, let events):
            guard let object = state.objects[number] else { return }
            object.set(.init(entry))
            object.listeners.notify(events, start: start)
        case .found(let number, let entry): state.objects[number] = NotificationSubscription(.init(entry))
        case .forget(let number): state.objects[number] = nil
        case .listed: notify([.subscriptionsUpdated])
        case .want: want()
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
