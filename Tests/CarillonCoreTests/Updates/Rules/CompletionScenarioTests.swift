import CarillonCore
import CarillonWire
import TestSupport
import Testing

/// Random offers, results and ends at one binding, by the rules and by ``NaiveCompletions``.
struct CompletionScenarioTests {
    private struct Scenario {
        var random: SeededRandom
        var now = Sample.now
        var naive = NaiveCompletions()
        var tables = TableCompletions()
        /// The operations that changed something, by their names.
        var counts: [String: Int] = [:]

        init(_ random: SeededRandom) { self.random = random }

        mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

        private static let orderKeys = [nil, nil, "a", "b"]

        private static func orderKey(_ update: UpdateSerial) -> String? { orderKeys[Int(update.rawValue) % 4] }

        /// Updates 1 to 12 of a new binding. The last one asks to fetch everything.
        mutating func publish() {
            var world = CompletionWorld()
            for number in Int64(1)...12 {
                world.updates[UpdateSerial(number)] = UpdateState(
                    status: .live, expiresAt: now.adding(seconds: Int64.random(in: 5000...9000, using: &random)),
                    isPaused: false, isContent: number % 4 == 2 || number % 8 < 2)
            }
            world.resyncs = [UpdateSerial(12)]
            naive = NaiveCompletions()
            tables = TableCompletions()
            naive.world = world
            tables.world = world
        }

        mutating func befall() {
            let update = UpdateSerial(Int64.random(in: 1...12, using: &random))
            let statuses: [Update.Status] = [.live, .live, .live, .expired, .withdrawn]
            let (status, isPaused) = (statuses.randomElement(using: &random) ?? .live, chance(4))
            naive.world.updates[update]?.status = status
            naive.world.updates[update]?.isPaused = isPaused
            naive.world.isBindingEnded = chance(6)
            if chance(3) { naive.world.revision += 1 }
            tables.world = naive.world
        }

        mutating func key() -> CompletionKey {
            if !chance(4), let row = naive.rows.randomElement(using: &random) { return row.completion.key }
            let entry = chance(3) ? Int.random(in: 1...14, using: &random) : 1
            return CompletionKey(
                update: UpdateSerial(Int64.random(in: 1...12, using: &random)), binding: NaiveCompletions.binding,
                entry: entry)
        }

        private mutating func result() -> UpdateResult {
            switch Int.random(in: 0..<6, using: &random) {
            case 0: .done
            case 1: .doneWith(reason: "almost")
            case 2: .deferred(seconds: 30, reason: nil)
            case 3: .unsupported
            default: .failed(isPermanent: chance(3), reason: "no")
            }
        }

        mutating func step() {
            now = now.adding(seconds: Int64.random(in: 0...40, using: &random))
            let (key, now) = (self.key(), self.now)
            let orderKey = Self.orderKey(key.update)
            switch Int.random(in: 0..<11, using: &random) {
            case 0, 1:
                let present = naive.rows.first { $0.completion.key == key }
                let isAgain = present != nil && !chance(8)
                let attempt = (present?.completion.machine.attempt ?? 0) + (chance(8) ? 2 : 1)
                let offer = UpdateOffer(
                    key: key, revision: naive.world.revision - (chance(8) ? 1 : 0), isAgain: isAgain, attempt: attempt,
                    orderKey: orderKey, at: now)
                let counted = tables.offer(offer)
                compare(isAgain ? "again" : "offer", counted, naive.offer(offer))
            case 2:
                let coalescer: UpdateSerial? = chance(3) ? UpdateSerial(Int64.random(in: 9...12, using: &random)) : nil
                var machine = CompletionMachine()
                if coalescer != nil {
                    _ = machine.coalesced()
                } else if chance(3) {
                    machine = CompletionMachine(.unsupported)
                }
                let completion = Completion(
                    key: key, machine: machine, changedAt: now, orderKey: orderKey, coalescedBy: coalescer)
                let before = naive.rows.count
                tables.evaluate(completion, at: now)
                naive.evaluate(completion, at: now)
                compare("hold", true, true, if: naive.rows.count > before)
            case 3:
                let outcomes: [Outcome] = [.acknowledged, .acknowledged, .failed, .unsupported, .cancelled]
                finish(key, FinalOutcome(outcomes.randomElement(using: &random) ?? .acknowledged, at: now))
            case 4, 5: report(result(), of: key)
            case 6:
                let states: [CompletionMachine.State] = [.superseded, .expired, .withdrawn, .gone, .unsupported, .expired]
                let state = states.randomElement(using: &random) ?? .gone
                let counted = tables.change(key, at: now) { $0.end($1, as: state, at: now) }
                compare("\(state)", counted, naive.change(key, at: now) { $0.ended(as: state) })
            case 7:
                let coalescer = UpdateSerial(Int64.random(in: 9...12, using: &random))
                guard coalescer != key.update else { return }
                let counted = tables.change(key, at: now) { $0.coalesce($1, by: coalescer, at: now) }
                compare("absorb", counted, naive.coalesce(key, by: coalescer, at: now))
            case 8:
                let counted = tables.change(key, at: now) { $0.leftAudience($1, at: now) }
                naive.leftAudience(key, at: now)
                compare("left", true, true, if: counted)
            case 9:
                let hadLeft = naive.rows.contains { $0.completion.hasLeftAudience }
                tables.returned(key, at: now)
                naive.returned(key, at: now)
                compare("returned", true, true, if: hadLeft)
            default:
                if chance(2) {
                    let parked = givenUp()
                    // Few completions are parked by themselves.
                    if parked == nil { report(.failed(isPermanent: true, reason: "no"), of: key) }
                    let key = chance(4) ? key : parked ?? key
                    let counted = tables.change(key, at: now) { $0.requeue($1, at: now) }
                    compare("requeue", counted, naive.change(key, at: now) { $0.requeued(at: now) })
                } else {
                    let counted = tables.change(key, at: now) { $0.lost($1, at: now) }
                    let expected = naive.change(key, at: now) { machine in
                        let before = machine
                        if machine.attempt > 0 { machine.due(at: now) }
                        return machine != before
                    }
                    compare("lost", counted, expected)
                }
            }
        }

        /// A completion that an operator can requeue.
        private mutating func givenUp() -> CompletionKey? {
            naive.rows.filter { row in
                var machine = row.completion.machine
                return machine.requeued(at: now)
            }.randomElement(using: &random)?.completion.key
        }

        private mutating func finish(_ key: CompletionKey, _ finalOutcome: FinalOutcome) {
            let counted = tables.change(key, at: now) { $0.finished($1, finalOutcome) }
            let expected = naive.change(key, at: now) { machine in
                let before = machine
                switch finalOutcome.outcome {
                case .acknowledged: machine.received(at: finalOutcome.at)
                case .failed: _ = machine.reported(.failed(isPermanent: false, reason: nil), at: finalOutcome.at)
                case .unsupported: _ = machine.reported(.unsupported, at: finalOutcome.at)
                default: machine.takenOut(at: finalOutcome.at)
                }
                return machine != before
            }
            compare("settled", counted, expected)
        }

        private mutating func report(_ result: UpdateResult, of key: CompletionKey) {
            let reported = ReportedResult(
                update: UpdateID(Bytes16(high: 4, low: 1)), entry: key.entry, attempt: chance(4) ? 1 : nil, result: result)
            let isLate = naive.rows.contains { $0.completion.key == key && $0.completion.machine.state == .expired }
            let counted = tables.report(reported, of: key, at: now)
            let expected = naive.change(key, at: now) { [now] in $0.reported(result, of: reported.attempt, at: now) }
            if !expected { naive.reportLate(result, of: key) }
            compare("report", counted, expected)
            compare("late", true, true, if: isLate)
        }

        private mutating func compare(_ name: String, _ counted: Bool, _ expected: Bool, if didHappen: Bool? = nil) {
            #expect(counted == expected, "\(name)")
            if didHappen ?? expected { counts[name, default: 0] += 1 }
        }

        /// Counts missed content, and forgets it, so that each operation is compared.
        mutating func forgetMissed() {
            if naive.needsResync { counts["missed", default: 0] += 1 }
            naive.needsResync = false
            tables.needsResync = false
        }

        private static let least: [String: Int] = {
            let names = [
                "offer", "again", "hold", "settled", "report", "late", "superseded", "expired", "withdrawn", "gone",
                "absorb", "left", "returned", "requeue", "lost",
            ]
            return Dictionary(uniqueKeysWithValues: names.map { ($0, 21) }).merging(["missed": 11]) { $1 }
        }()

        /// The events that occurred too rarely until now.
        var untried: [String] { ScenarioTurns.untried(counts, least: Self.least) }

        var isSame: Bool {
            let rows = Dictionary(uniqueKeysWithValues: naive.rows.map { ($0.completion.key, $0) })
            return tables.rows == rows && tables.needsResync == naive.needsResync
        }
    }

    @Test func `completions follow the documentation`() {
        var scenario = Scenario(.forTest())
        var turns = ScenarioTurns(150)
        while turns.next(unless: scenario.untried.isEmpty) {
            scenario.publish()
            for _ in 0..<100 {
                if scenario.chance(5) { scenario.befall() }
                scenario.step()
                guard scenario.isSame else {
                    Issue.record("the rows differ")
                    return
                }
                scenario.forgetMissed()
            }
        }
        let untried = scenario.untried
        #expect(untried.isEmpty, "\(scenario.counts)")
    }
}
