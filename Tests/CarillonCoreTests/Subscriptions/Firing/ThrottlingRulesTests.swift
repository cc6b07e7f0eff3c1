import CarillonCore
import Testing

/// Firings that wait until their subscription can fire again.
struct ThrottlingRulesTests {
    private let now = FiringSample.now
    private let item: ItemName

    init() throws { item = try #require(ItemName("a")) }

    /// A subscription that fired for its item some milliseconds ago.
    private func notified(_ ago: Int64?, _ policy: SubscriptionMachine.Policy = .every(coolDownSeconds: 0)) -> FiringSample {
        var sample = FiringSample(item, policy)
        sample.facts.watches[sample.key]?.notifiedAt = ago.map { now.adding(milliseconds: -$0) }
        return sample
    }

    @Test(
        arguments: [(nil, nil), (1000, nil), (1001, nil), (999, 1), (0, 1000), (-1, nil)] as [(Int64?, Int64?)])
    func `a firing waits for its pace, and a clock that was set back delays none`(notifiedAgo: Int64?, waits: Int64?) {
        let sample = notified(notifiedAgo)
        var rules = sample.rules
        let result = rules.throttle(sample.throttled(), at: now)
        #expect(result == (waits == nil ? .due : .throttled(insteadOf: 0)))
        var expected = FiringChanges()
        if let waits {
            expected.added = [sample.throttled()]
            expected.dues[sample.key] = now.adding(milliseconds: waits)
            expected.subscriptions[FiringSample.subscription] = SubscriptionMachine(
                .every(coolDownSeconds: 0), .subscribed, at: now.adding(seconds: -99), revision: FiringSample.revision,
                lastFiredAt: now, isPaused: false)
            expected.watches[sample.key] = FiringWatch(
                app: AppSerial(1), hasItem: true, lastFiring: 10, notifiedAt: sample.facts.watches[sample.key]?.notifiedAt)
        }
        #expect(rules.changes == expected)
    }

    @Test func `behind firings that wait a firing waits, also when the first of them is due`() {
        var sample = notified(1000)
        sample.wait([1])
        var rules = sample.rules
        let result = rules.throttle(sample.throttled(buffer: 2), at: now)
        #expect(result == .throttled(insteadOf: 0))
        #expect(rules.changes.removed.isEmpty && rules.changes.dues == [sample.key: now])
    }

    @Test(arguments: [(4, 0), (3, 1), (2, 2), (1, 3)])
    func `a buffer keeps the newest firings`(buffer: Int, replaced: Int) {
        var sample = notified(1)
        sample.wait([1, 1, 1])
        var rules = sample.rules
        let result = rules.throttle(sample.throttled(buffer: buffer), at: now)
        #expect(result == .throttled(insteadOf: replaced))
        #expect(rules.changes.removed == Array(([1, 2, 3] as [Int64]).prefix(replaced)))
    }

    @Test func `a firing that another one of the same call replaces is not stored`() {
        let sample = notified(1)
        var rules = sample.rules
        let results = (10...13).map { rules.throttle(sample.throttled(by: $0, bytes: Int($0), buffer: 2), at: now) }
        #expect(
            results == [
                .throttled(insteadOf: 0), .throttled(insteadOf: 0), .throttled(insteadOf: 1), .throttled(insteadOf: 1),
            ])
        #expect(rules.changes.added.map(\.number) == [12, 13] && rules.changes.removed.isEmpty)
        #expect(rules.changes.watches[sample.key]?.lastFiring == 13)
    }

    @Test func `a firing that does not count is not throttled`() {
        let sample = notified(1)
        var rules = sample.rules
        let results = [10, 10, 9, 11].map { rules.throttle(sample.throttled(by: $0, buffer: 9), at: now) }
        #expect(results == [.throttled(insteadOf: 0), .late, .late, .throttled(insteadOf: 0)])
        let cooling = notified(1, .every(coolDownSeconds: 10))
        rules = cooling.rules
        let cooled = [10, 11].map { rules.throttle(cooling.throttled(by: $0, buffer: 9), at: now) }
        #expect(cooled == [.throttled(insteadOf: 0), .late], "a throttled firing begins the cool-down")
        let single = notified(1, .once)
        rules = single.rules
        let result = rules.throttle(single.throttled(), at: now)
        #expect(result == .due && rules.changes == FiringChanges())
    }

    /// Returns the facts that are requested before a firing is throttled, in rounds, over the facts of a sample.
    private func rounds(_ sample: FiringSample, _ firings: [ThrottledFiring]) -> [FiringQuestions] {
        var (facts, asked, rounds) = (FiringFacts(), FiringQuestions(), [FiringQuestions]())
        while let questions = FiringRules.questions(toHold: firings, at: now, knowing: facts, asked: asked) {
            rounds.append(questions)
            if !questions.watches.isEmpty {
                facts.watches = sample.facts.watches
                facts.subscriptions = sample.facts.subscriptions
            }
            if !questions.queues.isEmpty { facts.queues = sample.facts.queues }
            if !questions.usage.isEmpty { facts.usage = sample.facts.usage }
            asked.formUnion(questions)
        }
        return rounds
    }

    @Test func `queues are read for firings that count, and usage for firings that wait`() {
        let sample = notified(1)
        var (watches, queues, usage) = (FiringQuestions(), FiringQuestions(), FiringQuestions())
        watches.watches = [sample.key]
        queues.queues = [sample.key]
        usage.usage = [FiringSample.device]
        #expect(rounds(sample, []).isEmpty)
        #expect(rounds(sample, [sample.throttled()]) == [watches, queues, usage], "the pace is not over")
        let free = notified(1000)
        #expect(rounds(free, [free.throttled()]) == [watches, queues])
        var queued = free
        queued.wait([1])
        #expect(rounds(queued, [queued.throttled()]) == [watches, queues, usage], "a firing waits before it")
        let single = notified(1, .once)
        #expect(rounds(single, [single.throttled()]) == [watches])
        var late = sample
        late.facts.watches[late.key]?.lastFiring = 10
        #expect(rounds(late, [late.throttled(by: 10)]) == [watches])
        #expect(rounds(late, [late.throttled(by: 10), late.throttled(by: 11)]) == [watches, queues, usage])
        late.facts.watches = [:]
        #expect(rounds(late, [late.throttled(by: 11)]) == [watches], "the subscription has no such item")
    }

    private static let limits = ThrottledLimits(firings: 3, bytes: 100)

    @Test(
        arguments: [(2, 99, .throttled(insteadOf: 0)), (2, 100, .full), (3, 3, .full), (0, 0, .throttled(insteadOf: 0))]
            as [(Int, Int, ThrottleResult)])
    func `firings of other subscriptions take room of the device`(firings: Int, bytes: Int, expected: ThrottleResult) {
        var sample = notified(1)
        sample.facts.usage[FiringSample.device] = ThrottledUsage(firings: firings, bytes: bytes)
        var rules = FiringRules(limits: Self.limits, knowing: sample.facts)
        let result = rules.throttle(sample.throttled(bytes: 1), at: now)
        #expect(result == expected)
        #expect(rules.changes.added.isEmpty == (expected == .full))
    }

    @Test func `the first firing of a device fits, with any size, and uses the whole limit`() {
        let sample = notified(1)
        var rules = FiringRules(limits: Self.limits, knowing: sample.facts)
        let results = [
            rules.throttle(sample.throttled(by: 10, bytes: 101, buffer: 9), at: now),
            rules.throttle(sample.throttled(by: 11, bytes: 1, buffer: 9), at: now),
        ]
        #expect(results == [.throttled(insteadOf: 0), .throttled(insteadOf: 1)])
    }

    @Test func `firings that wait longer make room, and are gone if that is not enough`() {
        var sample = notified(1)
        sample.wait([10, 20])
        sample.facts.usage[FiringSample.device] = ThrottledUsage(firings: 3, bytes: 100)
        var rules = FiringRules(limits: Self.limits, knowing: sample.facts)
        let fits = rules.throttle(sample.throttled(bytes: 10, buffer: 9), at: now)
        #expect(fits == .throttled(insteadOf: 1) && rules.changes.removed == [1])
        rules = FiringRules(limits: Self.limits, knowing: sample.facts)
        let isTooLarge = rules.throttle(sample.throttled(bytes: 31, buffer: 9), at: now)
        #expect(isTooLarge == .full && rules.changes.removed == [1, 2] && rules.changes.added.isEmpty)
        #expect(rules.changes.watches.isEmpty && rules.changes.subscriptions.isEmpty)
    }

    @Test func `the limits of a device are those of the documentation`() {
        #expect(ThrottledLimits() == ThrottledLimits(firings: 1000, bytes: 1 << 20))
    }
}
