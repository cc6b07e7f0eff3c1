import CarillonCore
import TestSupport
import Testing

/// Random firings of a few subscriptions, by the rules and by a model that does one after the other.
struct FiringScenarioTests {
    private static let limits = ThrottledLimits(firings: 6, bytes: 60)

    /// The work of a store with the rules.
    private struct Tables {
        var rows = FiringRows()
        /// Batches with an effect that did not count after the effects before it.
        var divided = 0
        /// Queues that were not read, and devices whose usage was not read.
        var savedQueues = 0
        var savedUsage = 0

        mutating func apply(_ effects: [FiringEffect]) -> [Bool] {
            var rules = rules(FiringRules.questions(for: effects))
            let counts = effects.map { rules.counts($0) }
            let applied = zip(effects, counts).allSatisfy { effect, counts in !counts || rules.apply(effect) }
            guard !applied else {
                rows.write(rules.changes)
                return counts
            }
            divided += 1
            return effects.map { applyAlone($0) }
        }

        private mutating func applyAlone(_ effect: FiringEffect) -> Bool {
            var rules = rules(FiringRules.questions(for: [effect]))
            guard rules.counts(effect) else { return false }
            let counted = rules.apply(effect)
            rows.write(rules.changes)
            return counted
        }

        mutating func throttle(_ firings: [ThrottledFiring], at now: Timestamp) -> [ThrottleResult] {
            var (facts, asked) = (FiringFacts(), FiringQuestions())
            while let questions = FiringRules.questions(toHold: firings, at: now, knowing: facts, asked: asked) {
                rows.answer(questions, into: &facts)
                asked.formUnion(questions)
            }
            // The results show that no decision depended on them.
            savedQueues += Set(firings.map(\.key)).count - asked.queues.count
            savedUsage += Set(firings.map(\.device)).count - asked.usage.count
            var rules = FiringRules(limits: FiringScenarioTests.limits, knowing: facts)
            let results = firings.map { rules.throttle($0, at: now) }
            rows.write(rules.changes)
            return results
        }

        mutating func drop(_ numbers: [Int64], at now: Timestamp) {
            var rules = rules(FiringRules.questions(forDropping: numbers))
            for number in numbers { rules.drop(number, at: now) }
            rows.write(rules.changes)
        }

        private func rules(_ questions: FiringQuestions) -> FiringRules {
            FiringRules(limits: FiringScenarioTests.limits, knowing: rows.answer(questions))
        }
    }

    private struct Scenario {
        var random: SeededRandom
        var now = Sample.now
        var firing: Int64 = 0
        let items: [ItemName]

        static let subscriptions = (1...4).map { SubscriptionSerial($0) }

        func device(of subscription: SubscriptionSerial) -> DeviceSerial {
            DeviceSerial(subscription.rawValue % 2)
        }

        mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

        mutating func key() -> FiringKey {
            FiringKey(
                Self.subscriptions.randomElement(using: &random) ?? SubscriptionSerial(1),
                on: items.randomElement(using: &random) ?? items[0])
        }

        mutating func target(_ key: FiringKey, in rows: FiringRows) -> Firing.Target {
            let revision = rows.subscriptions[key.subscription]?.machine.revision ?? 1
            return .init(subscription: key.subscription, revision: chance(5) ? revision - 1 : revision)
        }

        mutating func number() -> Int64 {
            if chance(80) { firing += 1 }
            return max(1, firing - (chance(20) ? Int64.random(in: 0...3, using: &random) : 0))
        }

        mutating func fired(in rows: FiringRows) -> FiringEffect {
            let key = key()
            return .fired(target(key, in: rows), on: key.item, by: number(), at: now)
        }

        mutating func throttled(in rows: FiringRows) -> ThrottledFiring {
            let key = key()
            return ThrottledFiring(
                target: target(key, in: rows), device: device(of: key.subscription), item: key.item, number: number(),
                body: Array(repeating: 1, count: Int.random(in: 0...30, using: &random)), ttl: 60,
                isAlwaysPushed: chance(50), isDistinct: chance(50), milliseconds: Int64.random(in: 1...3000, using: &random),
                buffer: Int.random(in: 1...3, using: &random))
        }

        /// A subscription after its device, its expiry or its end changed it.
        mutating func subscription(after revision: Int64) -> FiringSubscription {
            let policies: [SubscriptionMachine.Policy] = [
                .once, .everyCrossing, .every(coolDownSeconds: 0), .every(coolDownSeconds: 1),
            ]
            let machine = SubscriptionMachine(
                policies.randomElement(using: &random) ?? .once, .subscribed, at: now, revision: revision + 1,
                lastFiredAt: chance(30) ? now : nil, isPaused: chance(10))
            return FiringSubscription(
                machine, isEnded: chance(5),
                expiresAt: chance(30) ? now.adding(milliseconds: Int64.random(in: 0...9000, using: &random)) : nil,
                pace: chance(90) ? FiringPace(maxFrequency: Double.random(in: 0.2...20, using: &random)) : nil)
        }
    }

    /// The counts of events, so that a scenario with few events is found.
    private struct Tally {
        var notified = 0
        var pending = 0
        var delivered = 0
        var undelivered = 0
        var due = 0
        var throttled = 0
        var conflated = 0
        var late = 0
        var full = 0

        mutating func note(_ effect: FiringEffect, _ counted: Bool) {
            switch (effect, counted) {
            case (.fired, true): notified += 1
            case (.fired, false): pending += 1
            case (.throttledNotified, true): delivered += 1
            case (.throttledNotified, false): undelivered += 1
            }
        }

        mutating func note(_ result: ThrottleResult) {
            switch result {
            case .due: due += 1
            case .throttled(let insteadOf):
                throttled += 1
                conflated += insteadOf
            case .late: late += 1
            case .full: full += 1
            }
        }

        var least: Int {
            [notified, pending, delivered, undelivered, due, throttled, conflated, late, full].reduce(.max) { min($0, $1) }
        }
    }

    @Test func `firings by the rules have the effect of one after the other`() throws {
        let items = try ["a", "b"].map { try #require(ItemName($0)) }
        var scenario = Scenario(random: .forTest(), items: items)
        var (tables, naive, tally) = (Tables(), NaiveFirings(limits: Self.limits), Tally())
        for subscription in Scenario.subscriptions {
            change(scenario.subscription(after: 0), of: subscription, in: &tables, &naive)
            for item in items {
                let watch = FiringWatch(app: AppSerial(1), hasItem: true)
                tables.rows.watches[FiringKey(subscription, on: item)] = watch
                naive.rows.watches[FiringKey(subscription, on: item)] = watch
            }
        }
        func hasTriedAll() -> Bool {
            tally.least >= 20 && tables.divided >= 10 && tables.savedQueues >= 20 && tables.savedUsage >= 20
        }
        var turns = ScenarioTurns(6000)
        while turns.next(unless: hasTriedAll()) {
            scenario.now = scenario.now.adding(milliseconds: Int64.random(in: 0...600, using: &scenario.random))
            if scenario.chance(1) { scenario.now = scenario.now.adding(seconds: -5) }
            switch Int.random(in: 0..<100, using: &scenario.random) {
            case 0..<25: notify(&scenario, &tables, &naive, &tally)
            case 25..<60: throttle(&scenario, &tables, &naive, &tally)
            case 60..<80: deliver(&scenario, &tables, &naive, &tally)
            case 80..<85: drop(&scenario, &tables, &naive)
            case 85..<86: delete(&scenario, &tables, &naive)
            default:
                let key = scenario.key()
                let revision = naive.rows.subscriptions[key.subscription]?.machine.revision ?? 1
                change(scenario.subscription(after: revision), of: key.subscription, in: &tables, &naive)
                for item in items { bring(item, of: key.subscription, in: &tables, &naive) }
            }
            guard tables.rows.isLike(naive.rows) else {
                Issue.record("the rows differ after step \(turns.begun)")
                return
            }
        }
        #expect(tally.least >= 20, "\(tally)")
        #expect(tables.divided >= 10)
        #expect(tables.savedQueues >= 20 && tables.savedUsage >= 20)
    }

    // MARK: Steps

    private func notify(
        _ scenario: inout Scenario, _ tables: inout Tables, _ naive: inout NaiveFirings, _ tally: inout Tally
    ) {
        let count = Int.random(in: 1...5, using: &scenario.random)
        var effects: [FiringEffect] = []
        for _ in 0..<count { effects.append(scenario.fired(in: naive.rows)) }
        let results = tables.apply(effects)
        let expected = effects.map { naive.apply($0) }
        #expect(results == expected)
        for (effect, result) in zip(effects, expected) { tally.note(effect, result) }
    }

    private func throttle(
        _ scenario: inout Scenario, _ tables: inout Tables, _ naive: inout NaiveFirings, _ tally: inout Tally
    ) {
        let count = Int.random(in: 1...6, using: &scenario.random)
        var firings: [ThrottledFiring] = []
        for _ in 0..<count { firings.append(scenario.throttled(in: naive.rows)) }
        let results = tables.throttle(firings, at: scenario.now)
        let expected = firings.map { naive.throttle($0, at: scenario.now) }
        #expect(results == expected)
        for result in expected { tally.note(result) }
    }

    private func deliver(
        _ scenario: inout Scenario, _ tables: inout Tables, _ naive: inout NaiveFirings, _ tally: inout Tally
    ) {
        var places: [Int] = []
        for _ in 0..<3 { places.append(Int.random(in: 0...8, using: &scenario.random)) }
        let results = tables.apply(numbers(places, in: tables.rows).map { .throttledNotified($0, at: scenario.now) })
        let effects = numbers(places, in: naive.rows).map { FiringEffect.throttledNotified($0, at: scenario.now) }
        let expected = effects.map { naive.apply($0) }
        #expect(results == expected)
        for (effect, result) in zip(effects, expected) { tally.note(effect, result) }
    }

    private func drop(_ scenario: inout Scenario, _ tables: inout Tables, _ naive: inout NaiveFirings) {
        let places = [Int.random(in: 0...8, using: &scenario.random), Int.random(in: 0...8, using: &scenario.random)]
        tables.drop(numbers(places, in: tables.rows), at: scenario.now)
        for number in numbers(places, in: naive.rows) { naive.drop(number, at: scenario.now) }
    }

    /// The numbers of the throttled firings at some places; an unknown number for a place that is empty.
    private func numbers(_ places: [Int], in rows: FiringRows) -> [Int64] {
        places.map { $0 < rows.throttled.count ? rows.throttled[$0].number : .max }
    }

    /// An item is deleted: firings until then do not count for it any more.
    private func delete(_ scenario: inout Scenario, _ tables: inout Tables, _ naive: inout NaiveFirings) {
        let item = scenario.key().item
        for subscription in Scenario.subscriptions {
            let key = FiringKey(subscription, on: item)
            let watch = FiringWatch(app: AppSerial(1), hasItem: false, lastFiring: -scenario.firing)
            tables.rows.watches[key] = watch
            naive.rows.watches[key] = watch
            tables.rows.throttled.removeAll { $0.key == key }
            naive.rows.throttled.removeAll { $0.key == key }
        }
    }

    /// An item of a subscription has a value again.
    private func bring(
        _ item: ItemName, of subscription: SubscriptionSerial, in tables: inout Tables, _ naive: inout NaiveFirings
    ) {
        tables.rows.watches[FiringKey(subscription, on: item)]?.hasItem = true
        naive.rows.watches[FiringKey(subscription, on: item)]?.hasItem = true
    }

    private func change(
        _ subscription: FiringSubscription, of serial: SubscriptionSerial, in tables: inout Tables,
        _ naive: inout NaiveFirings
    ) {
        tables.rows.subscriptions[serial] = subscription
        naive.rows.subscriptions[serial] = subscription
    }
}
