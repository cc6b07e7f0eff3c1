import CarillonCore
import CarillonWire
import Testing

/// The changes of existing wakes.
struct WakeRulesTests {
    private let now = WakeSample.now
    private let queue = WakeSample.queue
    private let rules = WakeRules()

    // MARK: Signs of the device

    @Test func `an answer is noted, and ends a wake that nothing is left for`() throws {
        let wake = DeviceWake(dueAt: now, pace: WakeSample.pace(0, pushed: -100))
        var facts = WakeFacts(reach: WakeSample.reach(wake))
        #expect(rules.answered(at: now, knowing: facts) == .needs(.inbox))
        facts.isInboxEmpty = false
        let waiting = try rules.answered(at: now, knowing: facts).ruling()
        #expect(waiting.changes == WakeChanges() && waiting.reach.wake == wake && waiting.reach.answeredAt == now)
        facts.isInboxEmpty = true
        let empty = try rules.answered(at: now, knowing: facts).ruling()
        let idle = DeviceWake(pace: WakeSample.pace(0, pushed: -100))
        #expect(empty.changes.row == .paced(idle) && empty.reach.wake == idle && empty.reach.answeredAt == now)
        #expect(waiting.reach.quietBefore == 0 && empty.reach.quietBefore == .max, "nothing waits")
    }

    @Test func `an answer ends a slow pace, and leaves the wake where it is`() throws {
        let wake = DeviceWake(dueAt: now.adding(seconds: 500), pace: WakeSample.pace(1, pushed: -700))
        let facts = WakeFacts(reach: WakeSample.reach(wake), isInboxEmpty: false)
        let ruling = try rules.answered(at: now, knowing: facts).ruling()
        #expect(
            ruling.changes.row == .paced(DeviceWake(dueAt: wake.dueAt, pace: WakeSample.pace(0, pushed: -700))))
    }

    @Test(arguments: [(1199, false), (1200, true)] as [(Int64, Bool)])
    func `a finished wake is forgotten when its pace limits nothing`(seconds: Int64, isForgotten: Bool) throws {
        let wake = DeviceWake(dueAt: now, pace: WakeSample.pace(2, pushed: -seconds))
        let facts = WakeFacts(reach: WakeSample.reach(wake), isInboxEmpty: true)
        let ruling = try rules.answered(at: now, knowing: facts).ruling()
        let isRemoved = ruling.changes.row == .removed
        #expect(isRemoved == isForgotten)
        let isGone = ruling.reach.wake == nil
        #expect(isGone == isForgotten)
    }

    @Test func `a pending wake is not forgotten, and an unchanged one is not written`() throws {
        var facts = WakeFacts(reach: WakeSample.reach(DeviceWake(isUnderWay: true)))
        let unchanged = try rules.answered(at: now, knowing: facts).ruling()
        #expect(unchanged.changes == WakeChanges() && unchanged.reach.answeredAt == now)
        facts.reach.wake?.pace.unanswered = 1
        let answered = try rules.answered(at: now, knowing: facts).ruling()
        #expect(answered.changes.row == .paced(DeviceWake(isUnderWay: true)))
        facts.reach.wake = nil
        #expect(try rules.answered(at: now, knowing: facts).ruling() == WakeRuling(facts.reach))
    }

    @Test func `a device that connects is woken as usual from the third unanswered wake on`() {
        let dueAt = now.adding(seconds: 3000)
        #expect(rules.came(DeviceWake(dueAt: dueAt, pace: WakeSample.pace(2, pushed: -600)), at: now) == nil)
        let slow = DeviceWake(dueAt: dueAt, pace: WakeSample.pace(3, pushed: -600))
        let usual = WakeSample.pace(0, pushed: -600)
        #expect(rules.came(slow, at: now) == DeviceWake(dueAt: now.adding(seconds: 600), pace: usual))
        let soon = DeviceWake(dueAt: now.adding(seconds: 5), isUnderWay: true, pace: slow.pace)
        #expect(rules.came(soon, at: now) == DeviceWake(dueAt: now.adding(seconds: 5), isUnderWay: true, pace: usual))
        #expect(rules.came(DeviceWake(pace: slow.pace), at: now) == DeviceWake(pace: usual))
    }

    // MARK: Addresses

    @Test func `a registration concerns wakes if known values change or were unknown, or if the address changes`() {
        var known = WakeSample.reach()
        (known.answeredAt, known.alertLeasedAt, known.quietBefore) = (now, now, 5)
        let read = WakeSample.reach()
        #expect(rules.changed(from: known, to: read, hasOtherAddress: false) == .unchanged)
        #expect(rules.changed(from: known, to: read, hasOtherAddress: true) == .reachable(queue))
        #expect(rules.changed(from: nil, to: read, hasOtherAddress: false) == .reachable(queue))
        known.queue = WakeSample.sandbox
        #expect(rules.changed(from: known, to: read, hasOtherAddress: false) == .reachable(queue))
        let gone = PushReach().following(known)
        #expect(gone.quietBefore == 5 && gone.answeredAt == now && gone.alertLeasedAt == now)
        var ruling = WakeRuling(gone)
        ruling.changes.row = .idle
        #expect(rules.changed(from: known, to: PushReach(), hasOtherAddress: false) == .unreachable(ruling))
        #expect(rules.changed(from: gone, to: PushReach(), hasOtherAddress: false) == .unchanged)
    }

    @Test func `messages that wait when a device becomes reachable wake it, at its pace`() throws {
        let wake = DeviceWake(pace: WakeSample.pace(0, pushed: -1000))
        var facts = WakeFacts(reach: WakeSample.reach(wake))
        func decide() -> WakeVerdict { rules.readdressed(to: queue, hasOtherAddress: false, at: now, knowing: facts) }
        #expect(decide() == .needs(.waking))
        facts.isWaking = false
        #expect(try decide().ruling().changes == WakeChanges())
        facts.isWaking = true
        #expect(try decide().ruling().changes.row == .due(queue, now.adding(seconds: 200), at: now))
        facts.reach.wake = nil
        #expect(try decide().ruling().changes.row == .due(queue, now, at: now))
        facts.reach.wake = DeviceWake(isUnderWay: true)
        #expect(try decide().ruling() == WakeRuling(facts.reach))
    }

    @Test(
        arguments: [(10_000, true, false), (10_001, true, true), (10_001, false, false)] as [(Int64, Bool, Bool)])
    func `a wake that was put off is due at another address`(due: Int64, isOther: Bool, isMoved: Bool) throws {
        let facts = WakeFacts(reach: WakeSample.reach(DeviceWake(dueAt: now.adding(milliseconds: due))))
        let ruling = try rules.readdressed(to: queue, hasOtherAddress: isOther, at: now, knowing: facts).ruling()
        let row = isMoved ? WakeChanges.Row.due(queue, now, at: now) : nil
        #expect(ruling.changes.row == row)
    }

    // MARK: Pushes

    private let span = PushSpan(first: 4, last: 9, expiresAt: WakeSample.now.adding(seconds: 70))

    private func due(setSeconds: Int64 = 0, address: PushAddress? = WakeSample.address) -> DueWake {
        DueWake(
            device: Sample.device, queue: queue, dueAt: now, setAt: now.adding(seconds: -setSeconds), address: address)
    }

    private func facts(_ change: (inout WakeFacts) -> Void = { _ in }) -> WakeFacts {
        var facts = WakeFacts(reach: WakeSample.reach(DeviceWake(dueAt: now)), isWaking: true, span: span)
        change(&facts)
        return facts
    }

    private var end: Timestamp { now.adding(seconds: 60) }

    @Test func `a due wake is pushed, if a message wakes`() throws {
        let ruling = try rules.lease(due(), at: now, until: end, knowing: facts()).ruling()
        #expect(ruling.changes.push == NewPush(.wake, in: queue, for: span, .leased, dueAt: end, at: now))
        #expect(ruling.changes.push?.leases == 1)
        #expect(ruling.changes.row == .pushed)
        #expect(ruling.reach.wake == DeviceWake(isUnderWay: true))
    }

    @Test func `a wake is abandoned if the device cannot be reached there, or nothing wakes it`() throws {
        let unsearched = facts { ($0.isWaking, $0.span) = (nil, nil) }
        #expect(rules.lease(due(), at: now, until: end, knowing: unsearched) == .needs(.span))
        let given = [
            (due(), facts { $0.reach.queue = WakeSample.sandbox }), (due(), facts { $0.reach.queue = nil }),
            (due(address: nil), unsearched), (due(), facts { ($0.isWaking, $0.span) = (false, nil) }),
        ]
        for (due, facts) in given {
            let ruling = try rules.lease(due, at: now, until: end, knowing: facts).ruling()
            #expect(ruling.changes.row == .idle && ruling.changes.push == nil)
            #expect(ruling.reach.wake == DeviceWake())
        }
    }

    @Test(
        arguments: [
            (10, -9, true), (10, 0, true), (10, -10, false), (9, -9, false), (10, 1, false),
        ] as [(Int64, Int64, Bool)])
    func `a device that was connected and answered since has its full time again`(
        patience: Int64, answered: Int64, isBusy: Bool
    ) throws {
        let answeredAt = now.adding(seconds: answered)
        let ruling = try rules.lease(
            due(setSeconds: patience), at: now, until: end, knowing: facts { $0.reach.answeredAt = answeredAt }
        ).ruling()
        guard isBusy else {
            #expect(ruling.changes.row == .pushed)
            return
        }
        #expect(ruling.changes.row == .due(queue, answeredAt.adding(seconds: 10), at: answeredAt))
        #expect(ruling.reach.wake == DeviceWake(dueAt: answeredAt.adding(seconds: 10)))
        #expect(ruling.changes.push == nil)
    }

    @Test func `a finished wake is due again at its pace, while an envelope wakes`() throws {
        var facts = WakeFacts(reach: WakeSample.reach(DeviceWake(isUnderWay: true)))
        #expect(rules.pushEnded(.wake, .handed, at: now, knowing: facts) == .needs(.waking))
        facts.isWaking = true
        func row(_ state: PushState) throws -> WakeChanges.Row? {
            try rules.pushEnded(.wake, state, at: now, knowing: facts).ruling().changes.row
        }
        let pace = WakePace(unanswered: 1, pushedAt: now)
        #expect(try row(.handed) == .ended(DeviceWake(dueAt: now.adding(seconds: 1200), pace: pace), at: now))
        #expect(try row(.rejected) == .ended(DeviceWake(dueAt: now), at: now))
        #expect(try row(.parked) == .ended(DeviceWake(dueAt: now.adding(seconds: 86_400)), at: now))
        facts.isWaking = false
        #expect(try row(.handed) == .ended(DeviceWake(pace: pace), at: now))
        #expect(try row(.cancelled) == .removed)
        facts.reach.wake = nil
        #expect(try rules.pushEnded(.wake, .cancelled, at: now, knowing: facts).ruling().reach.wake == nil)
    }

    @Test func `the pace of a device that cannot be reached continues when its wake ends`() throws {
        let facts = WakeFacts(reach: PushReach())
        func row(_ state: PushState) throws -> WakeChanges.Row? {
            try rules.pushEnded(.wake, state, at: now, knowing: facts).ruling().changes.row
        }
        #expect(try row(.handed) == .endedOutOfReach(unanswered: 1, pushedAt: now))
        #expect(try row(.rejected) == .endedOutOfReach(unanswered: 0, pushedAt: nil))
    }

    @Test func `alerts that are over make room`() throws {
        var facts = WakeFacts(reach: WakeSample.reach())
        (facts.reach.alerts, facts.reach.triggers) = (2, 1)
        let alert = try rules.pushEnded(.alert, .handed, at: now, knowing: facts).ruling()
        #expect(alert.reach.alerts == 1 && alert.reach.triggers == 1 && alert.changes == WakeChanges())
        for kind in [PushKind.trigger, .unconditional] {
            let ruling = try rules.pushEnded(kind, .handed, at: now, knowing: facts).ruling()
            #expect(ruling.reach.alerts == 2 && ruling.reach.triggers == 0)
        }
        (facts.reach.alerts, facts.reach.triggers) = (0, 0)
        #expect(try rules.pushEnded(.alert, .handed, at: now, knowing: facts).ruling() == WakeRuling(facts.reach))
        #expect(try rules.pushEnded(.trigger, .handed, at: now, knowing: facts).ruling() == WakeRuling(facts.reach))
    }

    @Test func `a wake replaces an alert that is not shown`() {
        var reach = WakeSample.reach(DeviceWake(pace: WakeSample.pace(1, pushed: -1000)))
        reach.quietBefore = 8
        let ruling = rules.lostAlert(at: 5, at: now, knowing: WakeFacts(reach: reach))
        #expect(ruling.changes.row == .due(queue, now.adding(seconds: 200), at: now))
        #expect(ruling.reach.quietBefore == 5)
        for wake in [DeviceWake(dueAt: now), DeviceWake(isUnderWay: true)] {
            let there = rules.lostAlert(at: 9, at: now, knowing: WakeFacts(reach: WakeSample.reach(wake)))
            #expect(there == WakeRuling(WakeSample.reach(wake)))
        }
        var gone = PushReach()
        gone.quietBefore = 8
        let unreachable = rules.lostAlert(at: 5, at: now, knowing: WakeFacts(reach: gone))
        #expect(unreachable.changes == WakeChanges() && unreachable.reach.quietBefore == 5)
    }

    @Test func `a wake whose reasons ended with the user keeps its pace, and a pending push`() {
        func row(_ wake: DeviceWake?, isCancelled: Bool) -> WakeChanges.Row? {
            rules.reasonsEnded(of: wake, isPushCancelled: isCancelled, at: now)
        }
        let underWay = DeviceWake(isUnderWay: true)
        let paced = DeviceWake(dueAt: now, isUnderWay: true, pace: WakeSample.pace(0, pushed: -5000))
        #expect(row(nil, isCancelled: true) == nil)
        #expect(row(DeviceWake(dueAt: now), isCancelled: false) == .removed)
        #expect(row(underWay, isCancelled: false) == .idle)
        #expect(row(underWay, isCancelled: true) == .removed)
        #expect(row(paced, isCancelled: false) == .idle)
        #expect(row(paced, isCancelled: true) == .ended(DeviceWake(pace: paced.pace), at: now))
        let unanswered = DeviceWake(dueAt: now, pace: WakePace(unanswered: 1))
        #expect(row(unanswered, isCancelled: false) == .idle)
    }

    @Test func `a wake has no information any more after the shortest pause`() {
        #expect(rules.idleCutoff(at: now) == now.adding(seconds: -1200))
    }
}
