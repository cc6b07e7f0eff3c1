import CarillonCore
import Testing

/// How pushes end, and how long they are kept.
struct OutboxRulesTests {
    private let now = WakeSample.now
    private let rules = OutboxRules(retentionSeconds: 100)

    @Test func `a finished push is kept for a while`() {
        let finish = rules.finish(.wake, as: .handed, expiresAt: now.adding(seconds: 900), at: now)
        #expect(finish.kind == .wake && finish.state == .handed && finish.reason == nil && finish.at == now)
        #expect(finish.endsAt == now.adding(seconds: 100) && !finish.awaitsAddress && !finish.removesCopy)
        #expect(rules.cancelledUntil(now) == now.adding(seconds: 100))
    }

    @Test(arguments: [(99, 100), (100, 100), (101, 101)] as [(Int64, Int64)])
    func `an alert that awaits an address is kept as long as its message`(ttl: Int64, seconds: Int64) {
        let expiresAt = now.adding(seconds: ttl)
        let alert = rules.finish(
            .alert, as: .rejected, because: "dead", awaitsAddress: true, expiresAt: expiresAt, at: now)
        #expect(alert.awaitsAddress && alert.reason == "dead")
        #expect(alert.endsAt == now.adding(seconds: seconds))
        let wake = rules.finish(.wake, as: .rejected, because: "dead", awaitsAddress: true, expiresAt: expiresAt, at: now)
        #expect(!wake.awaitsAddress && wake.endsAt == now.adding(seconds: 100))
    }

    @Test(arguments: PushKind.allCases)
    func `a copy of an envelope is removed with its push, unless that is parked`(_ kind: PushKind) {
        for state in PushState.allCases {
            let finish = rules.finish(kind, as: state, expiresAt: now, at: now)
            let removesCopy = kind == .unconditional && state != .parked
            #expect(finish.removesCopy == removesCopy, "\(state)")
        }
    }

    @Test(arguments: [(320, 0), (321, 65), (400, 144), (0, 0)] as [(Int, Int)])
    func `a limited number of pushes of a device is kept, and the others are forgotten in steps`(kept: Int, excess: Int) {
        #expect(PushLimits.keptPerDevice == 256)
        #expect(rules.excess(of: kept) == excess)
    }

    @Test func `of the parked wakes of a device one is retried`() {
        for kind in [PushKind.alert, .trigger, .unconditional] { #expect(rules.requeue(kind, hasWake: nil) == .due) }
        for kind in [PushKind.wake, nil] as [PushKind?] {
            #expect(rules.requeue(kind, hasWake: nil) == .needsWake)
            #expect(rules.requeue(kind, hasWake: true) == .due)
            #expect(rules.requeue(kind, hasWake: false) == .cancelled)
        }
    }

    @Test func `a push that was not sent in its time expires, and one under way waits for its answer`() {
        let expiresAt = now.adding(seconds: -1)
        let expired = rules.timeOver(of: .alert, in: .scheduled, expiresAt: expiresAt, at: now)
        #expect(expired == .finished(rules.finish(.alert, as: .expired, expiresAt: expiresAt, at: now)))
        let underWay = rules.timeOver(of: .alert, in: .leased, expiresAt: expiresAt, at: now)
        #expect(underWay == .kept(until: now.adding(seconds: 60)))
    }

    @Test func `a push is forgotten when the server was in service for as long as it is kept`() {
        let cutoff = rules.cutoff(by: RetentionTime(now: now, served: 1000))
        #expect(cutoff.wall == now)
        #expect(cutoff.served == 1000 - 100 - RetentionTime.lagSeconds)
    }

    @Test func `a wake replaces a parked alert that is forgotten`() {
        for kind in PushKind.allCases {
            for state in PushState.allCases {
                let isFolded = kind != .wake && state == .parked
                #expect(rules.isFoldedWhenForgotten(kind, in: state) == isFolded, "\(kind), \(state)")
            }
        }
    }

    // MARK: Leasing

    private let push = DuePush(
        serial: 5, device: Sample.device, kind: .wake, queue: WakeSample.queue,
        expiresAt: WakeSample.now.adding(milliseconds: 1), attempts: 2, fence: 7, address: WakeSample.address)

    private func lease(_ push: DuePush, _ facts: LeaseFacts) -> OutboxRules.LeaseVerdict {
        rules.lease(push, at: now, until: now.adding(seconds: 60), knowing: facts)
    }

    private func over(_ push: DuePush, _ state: PushState) -> OutboxRules.LeaseRuling {
        .init(.finished(rules.finish(push.kind, as: state, expiresAt: push.expiresAt, at: now)))
    }

    private var leased: OutboxRules.LeaseRuling { .init(.leased(until: now.adding(seconds: 60), fence: 8)) }

    @Test func `an expired push ends, regardless of others`() {
        var push = self.push
        push.expiresAt = now
        #expect(lease(push, LeaseFacts()) == .decided(over(push, .expired)))
    }

    @Test func `a push waits for the address of its device, and ends with the device`() {
        var push = self.push
        push.address = nil
        var facts = LeaseFacts()
        #expect(lease(push, facts) == .needs(.device))
        facts.hasDevice = true
        #expect(lease(push, facts) == .decided(.init(.suspended)))
        facts.hasDevice = false
        #expect(lease(push, facts) == .decided(over(push, .cancelled)))
    }

    @Test func `a wake is sent while something wakes`() {
        var facts = LeaseFacts()
        #expect(lease(push, facts) == .needs(.waking))
        facts.isWaking = true
        #expect(lease(push, facts) == .decided(leased))
        facts.isWaking = false
        #expect(lease(push, facts) == .decided(over(push, .cancelled)))
    }

    @Test func `an alert is sent if its app has a text and its envelope exists`() {
        var push = self.push
        push.kind = .alert
        var facts = LeaseFacts()
        #expect(lease(push, facts) == .needs(.alertText))
        facts.hasAlertText = false
        var folded = over(push, .cancelled)
        folded.isFolded = true
        #expect(lease(push, facts) == .decided(folded))
        facts.hasAlertText = true
        #expect(lease(push, facts) == .needs(.envelope))
        facts.hasEnvelope = false
        #expect(lease(push, facts) == .decided(over(push, .cancelled)))
        facts.hasEnvelope = true
        var sent = leased
        (sent.hasTopic, sent.startsPace) = (true, true)
        #expect(lease(push, facts) == .decided(sent))
        facts.countsBadge = true
        sent.countsBadge = true
        #expect(lease(push, facts) == .decided(sent))
        push.badge = 3
        sent.countsBadge = false
        #expect(lease(push, facts) == .decided(sent), "it was counted before")
    }

    @Test func `the alert of a subscription needs no text and has no pace, and an unconditional one no topic`() {
        var facts = LeaseFacts()
        facts.hasEnvelope = true
        for kind in [PushKind.trigger, .unconditional] {
            var push = self.push
            push.kind = kind
            var sent = leased
            sent.hasTopic = kind == .trigger
            #expect(lease(push, facts) == .decided(sent))
        }
    }

    @Test func `alerts that are due at once have turns, by device`() {
        var turns = AlertTurns()
        #expect(turns.concerns(.alert) && !turns.concerns(.trigger) && !turns.concerns(.wake))
        let other = DeviceSerial(2)
        let first = turns.later(Sample.device, after: now, at: now)
        let second = turns.later(Sample.device, after: now, at: now)
        let third = turns.later(other, after: now.adding(milliseconds: -999), at: now)
        #expect(first == now.adding(seconds: 1))
        #expect(second == now.adding(seconds: 2))
        #expect(third == now.adding(milliseconds: 1))
        let free = [nil, now.adding(seconds: -1), now.adding(milliseconds: 1)] as [Timestamp?]
        for last in free {
            let later = turns.later(other, after: last, at: now)
            #expect(later == nil, "\(last?.milliseconds ?? 0)")
        }
    }
}
