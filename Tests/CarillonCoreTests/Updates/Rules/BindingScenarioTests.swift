import CarillonCore
import CarillonWire
import TestSupport
import Testing

/// Random beginnings, changes and ends, by the rules and by ``NaiveBindings``.
struct BindingScenarioTests {
    /// The events of a scenario.
    private struct Counts {
        var begun = 0
        var begunAgain = 0
        var refused = 0
        var removed = 0
        var missed = 0
        var changed = 0
        var evaluated = 0
        var notHeld = 0

        var haveAll: Bool {
            begun > 100 && begunAgain > 200 && refused > 20 && removed > 100 && missed > 30 && changed > 100
                && evaluated > 300
                && notHeld > 50
        }
    }

    @Test func `bindings follow the documentation`() {
        var random = SeededRandom.forTest()
        var naive = NaiveBindings(most: 4)
        var tables = TableBindings(most: 4)
        var counts = Counts()
        var now = Sample.now
        let users = [UserID("ada"), UserID("bob"), nil]
        var turns = ScenarioTurns(10_000)
        while turns.next(unless: counts.haveAll) {
            // The clock is also set back.
            now = now.adding(seconds: Int64.random(in: -2...9, using: &random))
            let device = Int64.random(in: 1...3, using: &random)
            let before = naive
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3:
                let profile = "p\(Int.random(in: 0..<3, using: &random))"
                let result = tables.begin(device, profile, at: now)
                let expected = naive.begin(device, profile, at: now)
                #expect(result == expected)
                count(expected, before, naive, &counts)
            case 3:
                let user = users.randomElement(using: &random) ?? nil
                tables.signIn(device, user, at: now)
                naive.signIn(device, user, at: now)
            case 4:
                guard let row = naive.rows.randomElement(using: &random) else { continue }
                let revision = row.revision - (Int.random(in: 0..<5, using: &random) == 0 ? 1 : 0)
                let isChanged = tables.change(row.serial, revision: revision)
                let isExpected = naive.change(row.serial, revision: revision)
                #expect(isChanged == isExpected)
                if isExpected { counts.changed += 1 }
            case 5..<8:
                guard let row = naive.rows.filter({ $0.endedAt == nil }).randomElement(using: &random) else { continue }
                let revision = row.revision - (Int.random(in: 0..<5, using: &random) == 0 ? 1 : 0)
                let update = max(1, naive.lastUpdate - Int64.random(in: 0...3, using: &random))
                let version = Int64.random(in: 1...2, using: &random)
                let isFull = Int.random(in: 0..<4, using: &random) == 0
                let isHeld = tables.evaluated(row.serial, revision: revision, to: update, rules: version, isFull: isFull)
                let isExpected = naive.evaluated(row.serial, revision: revision, to: update, rules: version, isFull: isFull)
                #expect(isHeld == isExpected)
                if isExpected { counts.evaluated += 1 } else { counts.notHeld += 1 }
            default:
                befall(&naive, &random)
                tables.lastUpdate = naive.lastUpdate
                tables.lastExpired = naive.lastExpired
                tables.isAppDeleted = naive.isAppDeleted
                for row in naive.rows {
                    tables.rows[BindingSerial(row.serial)]?.isUnfinished = row.isUnfinished
                    tables.rows[BindingSerial(row.serial)]?.missed = row.missed
                    tables.rows[BindingSerial(row.serial)]?.needsResync = row.needsResync
                }
            }
            let rows = Dictionary(uniqueKeysWithValues: naive.rows.map { (BindingSerial($0.serial), $0) })
            guard tables.rows == rows else {
                Issue.record("the rows differ")
                return
            }
        }
        #expect(counts.haveAll, "\(counts)")
    }

    private func count(_ serial: Int64?, _ before: NaiveBindings, _ after: NaiveBindings, _ counts: inout Counts) {
        guard let serial else {
            counts.refused += 1
            return
        }
        guard let earlier = before.rows.first(where: { $0.serial == serial }) else {
            counts.begun += 1
            if after.rows.count == before.rows.count { counts.removed += 1 }
            return
        }
        guard earlier.endedAt != nil else { return }
        counts.begunAgain += 1
        if after.rows.contains(where: { $0.serial == serial && $0.needsResync != earlier.needsResync }) {
            counts.missed += 1
        }
    }

    /// The changes beside the bindings: updates are published, expire and are finished; the app is deleted for a while.
    private func befall(_ naive: inout NaiveBindings, _ random: inout SeededRandom) {
        naive.lastUpdate += Int64.random(in: 0...2, using: &random)
        if Int.random(in: 0..<6, using: &random) == 0 { naive.lastExpired = naive.lastUpdate }
        naive.isAppDeleted = Int.random(in: 0..<20, using: &random) == 0
        guard let place = naive.rows.indices.randomElement(using: &random) else { return }
        naive.rows[place].isUnfinished = Bool.random(using: &random)
        let isMissed = Int.random(in: 0..<4, using: &random)
        naive.rows[place].missed = MissedContent(endedWithBinding: isMissed == 0, isWithoutResult: isMissed == 1)
        if Int.random(in: 0..<3, using: &random) == 0 { naive.rows[place].needsResync = false }
    }
}
