import CarillonCore
import CarillonWire
import Testing

struct WatchResultRulesTests {
    private let now = Sample.now
    private let rules = WatchRules()

    private func changes(_ lease: WatchChanges.LeaseEnd.Work, _ states: [WatchChanges.State] = []) -> WatchChanges {
        var changes = WatchChanges()
        changes.leases = [WatchChanges.LeaseEnd(WatchSample.end(), lease)]
        changes.states = states
        return changes
    }

    // MARK: Pings

    @Test func `a result that counts is stored, and the ping is due again`() {
        for last in [nil, Watch.LastPing(at: now, failure: .tokenLost, detail: "410")] {
            let record = WatchSample.record(last: last)
            let state = WatchChanges.State(
                watch: WatchSerial(3), revision: 4, machine: PingMachine(notified: .tokenLost, failures: 1), lastPing: last)
            let ruling = rules.record(record, knowing: WatchSample.facts())
            #expect(ruling == WatchRules.Ruling(counts: true, changes: changes(.due(now.adding(seconds: 60)), [state])))
        }
    }

    @Test func `a result under a lease that is not in force changes nothing`() {
        let record = WatchSample.record()
        let known = [
            WatchFacts(), WatchSample.facts(fence: 1), WatchSample.facts(fence: 3), WatchSample.facts(isHeld: false),
        ]
        for facts in known {
            #expect(rules.record(record, knowing: facts) == WatchRules.Ruling(counts: false))
            #expect(rules.giveUp(record, knowing: facts) == WatchChanges())
        }
    }

    @Test func `a result of a watch that was changed or removed ends the lease only`() {
        let record = WatchSample.record()
        var removed = WatchSample.facts()
        removed.states = [:]
        let known = [
            removed, WatchSample.facts(revision: 3), WatchSample.facts(revision: 5), WatchSample.facts(isPinged: false),
        ]
        for facts in known {
            #expect(rules.record(record, knowing: facts) == WatchRules.Ruling(counts: false, changes: changes(.stays)))
        }
    }

    @Test func `a discarded result ends the lease, even if it would count`() {
        #expect(rules.giveUp(WatchSample.record(), knowing: WatchSample.facts()) == changes(.stays))
    }

    // MARK: Backends that speak for themselves

    @Test func `a backend is believed if its channel was notified of a failure`() {
        let channel = WatchSample.channel.serial
        #expect(rules.vouch(for: channel, knowing: WatchSample.facts(notified: nil)) == WatchRules.Ruling(counts: false))
        #expect(rules.vouch(for: channel, knowing: WatchFacts()) == WatchRules.Ruling(counts: false))
        let ruling = rules.vouch(for: channel, knowing: WatchSample.facts())
        #expect(ruling.counts)
        #expect(ruling.changes.leases.isEmpty)
        let state = WatchChanges.State(watch: WatchSerial(3), revision: 5, machine: PingMachine(), lastPing: nil)
        #expect(ruling.changes.states == [state])
    }

    @Test func `of two effects on one watch, the second is judged after the first`() {
        let channel = WatchSample.channel.serial
        var facts = WatchSample.facts()
        facts.apply(rules.vouch(for: channel, knowing: facts).changes)
        #expect(!rules.vouch(for: channel, knowing: facts).counts)
        #expect(!rules.record(WatchSample.record(), knowing: facts).counts)
        #expect(rules.record(WatchSample.record(revision: 5), knowing: facts).counts)

        var pinged = WatchSample.facts(notified: nil)
        pinged.apply(rules.record(WatchSample.record(), knowing: pinged).changes)
        #expect(!rules.record(WatchSample.record(), knowing: pinged).counts)
        #expect(rules.vouch(for: channel, knowing: pinged).counts)
    }

    // MARK: Callbacks

    @Test(arguments: [CallbackMachine.Step.done, .givenUp, .lost])
    func `a finished callback is removed`(step: CallbackMachine.Step) {
        let facts = CallbackFacts(lease: StoredLease(fence: 2, isHeld: true), usage: WatchUsage(callbacks: 2))
        let ruling = rules.record(step, of: WatchSample.callback(), end: WatchSample.end(), knowing: facts)
        var expected = changes(.removed)
        expected.removedCallbacks = [7]
        expected.usage = [WatchSample.app: .added(WatchUsage(callbacks: -1))]
        #expect(ruling == WatchRules.Ruling(counts: true, changes: expected))
    }

    @Test(arguments: [
        (WatchUsage(callbacks: 1), WatchChanges.Usage.emptied(WatchUsage(callbacks: -1))),
        (WatchUsage(watches: 1, callbacks: 1), .added(WatchUsage(callbacks: -1))),
    ])
    func `the last callback empties the counts of the app`(usage: WatchUsage, change: WatchChanges.Usage) {
        let facts = CallbackFacts(lease: StoredLease(fence: 2, isHeld: true), usage: usage)
        let ruling = rules.record(.done, of: WatchSample.callback(), end: WatchSample.end(), knowing: facts)
        #expect(ruling.changes.usage == [WatchSample.app: change])
    }

    @Test(arguments: [
        (WatchUsage(), WatchChanges.Usage.emptied(WatchUsage())),
        (WatchUsage(callbacks: 3), .added(WatchUsage())),
        (WatchUsage(watches: -2, callbacks: 3), .added(WatchUsage(watches: 2))),
        (WatchUsage(watches: 2, callbacks: -1), .added(WatchUsage(watches: -1, callbacks: 1))),
    ])
    func `counts that do not match the rows do not fall below zero`(usage: WatchUsage, change: WatchChanges.Usage) {
        #expect(rules.removedWatch(of: WatchSample.app, knowing: usage).usage == [WatchSample.app: change])
    }

    @Test func `a callback that is repeated keeps its attempts`() {
        let facts = CallbackFacts(lease: StoredLease(fence: 2, isHeld: true), usage: WatchUsage(callbacks: 1))
        let next = now.adding(seconds: 5)
        let callback = WatchSample.callback(attempts: 3)
        let ruling = rules.record(.retry(at: next), of: callback, end: WatchSample.end(), knowing: facts)
        var expected = changes(.due(next))
        expected.attempts = [7: 3]
        #expect(ruling == WatchRules.Ruling(counts: true, changes: expected))
    }

    @Test func `a callback under a lease that is not in force changes nothing`() {
        let leases = [nil, StoredLease(fence: 1, isHeld: true), StoredLease(fence: 2, isHeld: false)]
        for lease in leases {
            let facts = CallbackFacts(lease: lease, usage: WatchUsage(callbacks: 1))
            for step in [CallbackMachine.Step.done, .retry(at: now)] {
                let ruling = rules.record(step, of: WatchSample.callback(), end: WatchSample.end(), knowing: facts)
                #expect(ruling == WatchRules.Ruling(counts: false))
            }
        }
    }

    // MARK: Overdue pings

    @Test func `pings that are overdue are spread, and others stay`() {
        let due = OverduePing(work: 1, intervalSeconds: 60, dueAt: now)
        #expect(rules.spread([due], at: now) == WatchChanges())
        let numbers: [(Int64, Int)] = [(3, 60), (100, 60), (100, 3600), (100, 300), (100, 301)]
        let pings = numbers.map { work, seconds in
            OverduePing(work: work, intervalSeconds: seconds, dueAt: now.adding(milliseconds: -1))
        }
        let moved = rules.spread(pings, at: now).movedPings
        #expect(moved.map(\.work) == [3, 100, 100, 100, 100])
        #expect(moved.allSatisfy { $0.at == now })
        let delays = moved.map { $0.dueAt.milliseconds - now.milliseconds }
        #expect(delays == [23_757, 11_900, 191_900, 191_900, 191_900])
    }

    @Test func `numbers of any size are spread`() {
        let pings = [Int64.max, 1 << 60].map { OverduePing(work: $0, intervalSeconds: 15, dueAt: now.adding(seconds: -1)) }
        for moved in rules.spread(pings, at: now).movedPings {
            #expect((now..<now.adding(seconds: 15)).contains(moved.dueAt))
        }
    }
}
