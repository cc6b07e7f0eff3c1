import CarillonCore

/// A subscription on one item, as the facts of the rules.
struct FiringSample {
    static let now = Sample.now
    static let subscription = SubscriptionSerial(7)
    static let revision: Int64 = 3
    static let device = Sample.device

    let key: FiringKey
    var item: ItemName { key.item }
    var facts = FiringFacts()
    var target = Firing.Target(subscription: FiringSample.subscription, revision: FiringSample.revision)

    init(
        _ item: ItemName, _ policy: SubscriptionMachine.Policy = .every(coolDownSeconds: 0), firedAt: Timestamp? = nil,
        isPaused: Bool = false
    ) {
        key = FiringKey(Self.subscription, on: item)
        let machine = SubscriptionMachine(
            policy, .subscribed, at: Self.now.adding(seconds: -99), revision: Self.revision, lastFiredAt: firedAt,
            isPaused: isPaused)
        facts.subscriptions[Self.subscription] = FiringSubscription(machine, pace: FiringPace(maxFrequency: 1))
        facts.watches[key] = FiringWatch(app: AppSerial(1), hasItem: true)
    }

    var rules: FiringRules { FiringRules(knowing: facts) }

    func fired(by number: Int64 = 10, at now: Timestamp = FiringSample.now) -> FiringEffect {
        .fired(target, on: item, by: number, at: now)
    }

    func throttled(
        by number: Int64 = 10, bytes: Int = 1, milliseconds: Int64 = 1000, buffer: Int = 1
    ) -> ThrottledFiring {
        ThrottledFiring(
            target: target, device: Self.device, item: item, number: number, body: Array(repeating: 1, count: bytes),
            ttl: 60, isAlwaysPushed: false, isDistinct: false, milliseconds: milliseconds, buffer: buffer)
    }

    /// Adds firings that wait, with numbers from 1 on.
    mutating func wait(_ sizes: [Int]) {
        facts.queues[key] = sizes.enumerated().map { ThrottledSize(Int64($0.offset + 1), bytes: $0.element) }
        for number in sizes.indices { facts.throttled[Int64(number + 1)] = ThrottledEntry(key, revision: Self.revision) }
        facts.usage[Self.device] = ThrottledUsage(firings: sizes.count, bytes: sizes.reduce(0, +))
    }
}
