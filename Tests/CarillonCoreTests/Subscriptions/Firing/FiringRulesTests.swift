import CarillonCore
import Testing

struct FiringRulesTests {
    private let now = FiringSample.now
    private let item: ItemName
    private let other: ItemName

    init() throws {
        item = try #require(ItemName("a"))
        other = try #require(ItemName("b"))
    }

    // MARK: Firing

    @Test func `a firing that counts changes its subscription and its item`() {
        let sample = FiringSample(item)
        var rules = sample.rules
        #expect(rules.counts(sample.fired()))
        let counted = rules.apply(sample.fired())
        #expect(counted)
        let machine = SubscriptionMachine(
            .every(coolDownSeconds: 0), .subscribed, at: now.adding(seconds: -99), revision: 3, lastFiredAt: now,
            isPaused: false)
        var expected = FiringChanges()
        expected.subscriptions[FiringSample.subscription] = machine
        expected.watches[sample.key] = FiringWatch(app: AppSerial(1), hasItem: true, lastFiring: 10, notifiedAt: now)
        #expect(rules.changes == expected)
    }

    @Test func `a single use ends with its first firing`() {
        let sample = FiringSample(item, .once)
        var rules = sample.rules
        let counted = rules.apply(sample.fired())
        #expect(counted)
        let machine = rules.changes.subscriptions[FiringSample.subscription]
        #expect(machine?.status == .triggered && machine?.statusAt == now && machine?.lastFiredAt == now)
    }

    @Test(
        arguments: [(9, true), (10, false), (11, false), (-9, true), (-10, false), (-11, false), (0, true)]
            as [(Int64, Bool)])
    func `only a later firing than the last one counts, or than the deletion of the item`(last: Int64, counts: Bool) {
        var sample = FiringSample(item)
        sample.facts.watches[sample.key]?.lastFiring = last
        #expect(sample.rules.counts(sample.fired(by: 10)) == counts)
    }

    @Test(arguments: [(-1, false), (0, false), (1, true)] as [(Int64, Bool)])
    func `an expired subscription does not fire`(milliseconds: Int64, counts: Bool) {
        var sample = FiringSample(item)
        sample.wait([1])
        sample.facts.subscriptions[FiringSample.subscription]?.expiresAt = now.adding(milliseconds: milliseconds)
        #expect(sample.rules.counts(sample.fired()) == counts)
        #expect(sample.rules.counts(.throttledNotified(1, at: now)) == counts)
    }

    @Test(arguments: [(9_999, false), (10_000, true), (-1, true)] as [(Int64, Bool)])
    func `a cool-down ends at its moment, and does not delay a firing before its start`(
        milliseconds: Int64, counts: Bool
    ) {
        let firedAt = now.adding(milliseconds: -milliseconds)
        let sample = FiringSample(item, .every(coolDownSeconds: 10), firedAt: firedAt)
        #expect(sample.rules.counts(sample.fired()) == counts)
    }

    @Test func `a subscription that ended, was changed or is paused does not fire, nor on an item without a value`() {
        let fine = FiringSample(item)
        var (ended, changed, withoutItem) = (fine, fine, fine)
        ended.facts.subscriptions[FiringSample.subscription]?.isEnded = true
        changed.target.revision = FiringSample.revision - 1
        withoutItem.facts.watches[fine.key]?.hasItem = false
        var (unknown, unwatched) = (fine, fine)
        unknown.facts.subscriptions = [:]
        unwatched.facts.watches = [:]
        for sample in [ended, changed, withoutItem, unknown, unwatched, FiringSample(item, isPaused: true)] {
            #expect(!sample.rules.counts(sample.fired()))
            var rules = sample.rules
            let counted = rules.apply(sample.fired())
            #expect(!counted && rules.changes == FiringChanges())
        }
    }

    @Test(arguments: [SubscriptionMachine.Policy.once, .every(coolDownSeconds: 10)])
    func `a firing is judged with the firings of other items before it`(policy: SubscriptionMachine.Policy) {
        var sample = FiringSample(item, policy)
        sample.facts.watches[FiringKey(FiringSample.subscription, on: other)] = FiringWatch(app: AppSerial(1), hasItem: true)
        let second = FiringEffect.fired(sample.target, on: other, by: 11, at: now)
        #expect(sample.rules.counts(second))
        var rules = sample.rules
        let counted = [rules.apply(sample.fired()), rules.apply(second)]
        #expect(counted == [true, false])
        #expect(Array(rules.changes.watches.keys) == [sample.key])
    }

    @Test func `a firing counts once`() {
        let sample = FiringSample(item)
        var rules = sample.rules
        let counted = [10, 10, 9, 11].map { rules.apply(sample.fired(by: $0)) }
        #expect(counted == [true, false, false, true])
        #expect(rules.changes.watches[sample.key]?.lastFiring == 11)
    }

    // MARK: Throttled firings

    @Test func `a delivery of a throttled firing begins the pace of the next one`() {
        var sample = FiringSample(item)
        sample.wait([5, 5])
        sample.facts.watches[sample.key]?.lastFiring = 9
        sample.facts.subscriptions[FiringSample.subscription]?.pace = FiringPace(maxFrequency: 0.3)
        var rules = sample.rules
        let counted = [rules.apply(.throttledNotified(1, at: now)), rules.apply(.throttledNotified(1, at: now))]
        #expect(counted == [true, false], "once")
        var expected = FiringChanges()
        expected.removed = [1]
        expected.watches[sample.key] = FiringWatch(app: AppSerial(1), hasItem: true, lastFiring: 9, notifiedAt: now)
        expected.dues[sample.key] = now.adding(milliseconds: 3334)
        #expect(rules.changes == expected)
    }

    @Test func `a throttled firing of a subscription that is not as it was does not count`() {
        var fine = FiringSample(item)
        fine.wait([1])
        #expect(fine.rules.counts(.throttledNotified(1, at: now)))
        #expect(!fine.rules.counts(.throttledNotified(2, at: now)), "it is not there")
        var (ended, changed, withoutItem, withoutPace) = (fine, fine, fine, fine)
        ended.facts.subscriptions[FiringSample.subscription]?.isEnded = true
        changed.facts.throttled[1]?.revision -= 1
        withoutItem.facts.watches[fine.key]?.hasItem = false
        withoutPace.facts.subscriptions[FiringSample.subscription]?.pace = nil
        var paused = FiringSample(item, isPaused: true)
        paused.wait([1])
        var triggered = fine
        let machine = SubscriptionMachine(
            .once, .triggered, at: now, revision: FiringSample.revision, lastFiredAt: now, isPaused: false)
        triggered.facts.subscriptions[FiringSample.subscription]?.machine = machine
        for sample in [ended, changed, withoutItem, withoutPace, paused, triggered] {
            #expect(!sample.rules.counts(.throttledNotified(1, at: now)))
            var rules = sample.rules
            let counted = rules.apply(.throttledNotified(1, at: now))
            #expect(!counted && rules.changes == FiringChanges())
        }
    }

    @Test func `behind a throttled firing that is dropped the next one is due, whether or not its subscription exists`() {
        var sample = FiringSample(item, isPaused: true)
        sample.wait([1, 1])
        sample.facts.subscriptions = [:]
        sample.facts.watches = [:]
        var rules = sample.rules
        for number in [1, 9] as [Int64] { rules.drop(number, at: now) }
        rules.drop(1, at: now.adding(seconds: 1))
        var expected = FiringChanges()
        expected.removed = [1]
        expected.dues[sample.key] = now
        #expect(rules.changes == expected)
    }

    @Test(arguments: [(3333, nil), (3334, nil), (3335, 3334), (9_999_999, 3334), (-1, nil)] as [(Int64, Int64?)])
    func `after a clock was set back no firing waits longer than its pace`(due: Int64, becomes: Int64?) {
        let found = FiringRules.dueTime(
            broughtBackFrom: now.adding(milliseconds: due), by: FiringPace(maxFrequency: 0.3), at: now)
        #expect(found == becomes.map { now.adding(milliseconds: $0) })
    }

    // MARK: Questions

    @Test func `the rules ask for the facts of their decisions`() {
        let sample = FiringSample(item)
        var effects = FiringQuestions()
        effects.watches = [sample.key]
        effects.throttled = [4]
        #expect(FiringRules.questions(for: [sample.fired(), .throttledNotified(4, at: now)]) == effects)
        var dropping = FiringQuestions()
        dropping.throttled = [1, 2]
        #expect(FiringRules.questions(forDropping: [1, 2, 1]) == dropping)
    }
}
