import CarillonCore
import CarillonWire
import TestSupport
import Testing

/// Random events of one device, by the rules and by ``NaiveWakes``.
struct WakeScenarioTests {
    private struct Scenario {
        var random: SeededRandom
        var now = WakeSample.now
        var naive = NaiveWakes()
        var tables = TableWakes()
        private var position: Int64 = 0
        /// How often each thing happened.
        var counted: [String: Int] = [:]

        init(_ random: SeededRandom) { self.random = random }

        mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

        mutating func pass() {
            let seconds = [0, 0, 1, 1, 5, 10, 61, 600, 1200, 4000, 90_000] as [Int64]
            let milliseconds = 1000 * (seconds.randomElement(using: &random) ?? 1) + (chance(4) ? 1 : 0)
            now = now.adding(milliseconds: milliseconds)
        }

        mutating func register() {
            if naive.queue != nil, chance(3) {
                tables.register(nil, isOther: false, at: now)
                naive.leave()
                return
            }
            let isOther = naive.queue != nil || chance(2)
            let queue = chance(2) ? WakeSample.queue : WakeSample.sandbox
            tables.register(queue, isOther: isOther, at: now)
            naive.register(queue.number, isOther: isOther, at: now.milliseconds)
        }

        mutating func append() {
            position += 1
            let isFired = chance(4)
            let modes = [WakeMode.none, .background, .background, .alert]
            let mode = modes.randomElement(using: &random) ?? WakeMode.background
            var envelope = isFired ? WakeSample.fired(position) : WakeSample.envelope(position)
            envelope.acceptedAt = now
            envelope.expiresAt = now.adding(seconds: chance(3) ? 30 : 200_000)
            let request = WakeRequest(mode, dueAt: now.adding(seconds: chance(2) ? 10 : 0), needsAlertText: !isFired)
            tables.append(envelope, request)
            naive.append(
                position, mode, isFired: isFired, wanted: request.dueAt.milliseconds, end: envelope.expiresAt.milliseconds,
                at: now.milliseconds)
            if let wake = naive.waiting.last?.wake { counted["told \(wake)", default: 0] += 1 }
        }

        mutating func acknowledge() {
            guard let position = naive.waiting.map(\.position).randomElement(using: &random) else { return }
            tables.acknowledge(position, at: now)
            naive.acknowledge(position, at: now.milliseconds)
        }

        /// Returns whether the rules and the model agree.
        mutating func push() -> Bool {
            if naive.wake?.isUnderWay == true {
                let states = [PushState.handed, .handed, .parked, .cancelled, .rejected]
                let state = states.randomElement(using: &random) ?? .handed
                tables.end(state, at: now)
                naive.end(state, at: now.milliseconds)
                return true
            }
            let leased = tables.lease(at: now)
            let expected = naive.lease(at: now.milliseconds)
            if let expected { counted[expected[0] == expected[1] ? "one" : "many", default: 0] += 1 }
            return leased == expected
        }

        mutating func alert() {
            if chance(3) {
                guard let position = naive.waiting.filter({ $0.wake == .alert }).map(\.position).first else { return }
                tables.loseAlert(position, at: now)
                naive.loseAlert(position, at: now.milliseconds)
            } else if let place = naive.alerts.indices.randomElement(using: &random) {
                let isRemembered = tables.isRemembered
                tables.endAlert(place, at: now)
                naive.endAlert(place, isRemembered: isRemembered)
                counted[isRemembered ? "ended" : "ended, unknown", default: 0] += 1
            }
        }

        mutating func other() {
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                tables.come(at: now)
                naive.come(at: now.milliseconds)
            case 1:
                naive.hasText.toggle()
                tables.hasText = naive.hasText
            default:
                if naive.queue == nil, naive.wake != nil { counted["started out of reach", default: 0] += 1 }
                tables.start()
                naive.start()
            }
        }

        private static let leastWritten = [
            "due": 200, "idle": 50, "pushed": 80, "paced": 50, "ended": 50, "endedOutOfReach": 1, "readdressed": 100,
            "removed": 10,
        ]
        private static let leastCounted = [
            "told background": 500, "told alert": 100, "one": 20, "many": 20, "ended, unknown": 5,
            "started out of reach": 20,
        ]

        /// The events that occurred too rarely until now.
        var untried: [String] {
            ScenarioTurns.untried(tables.written, least: Self.leastWritten)
                + ScenarioTurns.untried(counted, least: Self.leastCounted)
        }

        var isSame: Bool {
            tables.wake == naive.wake && tables.alerts == naive.alerts && tables.waiting == naive.waiting
                && tables.queue?.number == naive.queue
        }
    }

    @Test func `in random sequences, each device that has a reason is woken, at its pace`() {
        var scenario = Scenario(.forTest())
        scenario.register()
        var turns = ScenarioTurns(20_000)
        while turns.next(unless: scenario.untried.isEmpty) {
            if scenario.chance(3) { scenario.pass() }
            var isSame = true
            let what = Int.random(in: 0..<20, using: &scenario.random)
            switch what {
            case 0..<5: scenario.append()
            case 5..<11: scenario.acknowledge()
            case 11..<15: isSame = scenario.push()
            case 15..<17: scenario.alert()
            case 17: scenario.register()
            default: scenario.other()
            }
            guard isSame, scenario.isSame else {
                Issue.record(
                    "step \(turns.begun), \(what): \(scenario.tables.wake as Any) instead of \(scenario.naive.wake as Any)")
                return
            }
        }
        let untried = scenario.untried
        #expect(untried.isEmpty, "\(scenario.tables.written) \(scenario.counted)")
    }
}
