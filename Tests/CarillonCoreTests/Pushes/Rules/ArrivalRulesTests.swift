import CarillonCore
import CarillonWire
import Testing

/// The effect of an envelope that begins to wait.
struct ArrivalRulesTests {
    private let now = WakeSample.now
    private let rules = WakeRules()

    private func arrive(
        _ envelope: Envelope, _ request: WakeRequest, _ reach: PushReach, hasText: Bool? = nil
    ) throws -> WakeRuling {
        try rules.arrived(envelope, request, knowing: WakeFacts(reach: reach, hasAlertText: hasText)).ruling()
    }

    @Test func `an envelope is of interest if it is to wake and its kind may`() {
        let message = WakeSample.envelope(1)
        var closed = message
        closed.kind = .channelClosed
        #expect(rules.concerns(message, WakeRequest(.background, dueAt: now)))
        #expect(rules.concerns(message, WakeRequest(.alert, dueAt: now)))
        #expect(!rules.concerns(message, WakeRequest(.none, dueAt: now)))
        #expect(!rules.concerns(closed, WakeRequest(.alert, dueAt: now)))
    }

    @Test func `the first message makes a wake, in the push queue of its device`() throws {
        let request = WakeRequest(.background, dueAt: now.adding(seconds: 10))
        let ruling = try arrive(WakeSample.envelope(7), request, WakeSample.reach())
        #expect(ruling.mode == .background)
        #expect(ruling.changes.row == .due(WakeSample.queue, now.adding(seconds: 10), at: now))
        #expect(ruling.changes.push == nil)
        #expect(ruling.reach.wake == DeviceWake(dueAt: now.adding(seconds: 10)))
    }

    @Test func `a message for a device that cannot be reached makes no wake, and is one that wakes`() throws {
        var reach = PushReach()
        reach.quietBefore = 9
        let ruling = try arrive(WakeSample.envelope(7), WakeRequest(.alert, dueAt: now), reach)
        #expect(ruling.mode == .background)
        #expect(ruling.changes == WakeChanges())
        #expect(ruling.reach.quietBefore == 7)
        let later = try arrive(WakeSample.envelope(12), WakeRequest(.background, dueAt: now), reach)
        #expect(later.reach.quietBefore == 9)
    }

    @Test func `the first message that wakes is known if nothing before it wakes`() throws {
        let request = WakeRequest(.background, dueAt: now)
        var reach = WakeSample.reach()
        #expect(
            try arrive(WakeSample.envelope(7), request, reach).reach.firstWaking == nil,
            "the waiting envelopes are not known")
        reach.quietBefore = .max
        let alert = try arrive(WakeSample.envelope(6), WakeRequest(.alert, dueAt: now), reach, hasText: true)
        #expect(alert.reach.quietBefore == .max && alert.reach.firstWaking == nil)
        let first = try arrive(WakeSample.envelope(7, ttl: 50), request, reach).reach
        let span = PushSpan(first: 7, last: 7, expiresAt: now.adding(seconds: 50))
        #expect(first.quietBefore == 7 && first.firstWaking == span)
        let second = try arrive(WakeSample.envelope(8), request, first).reach
        #expect(second.quietBefore == 7 && second.firstWaking == span)
        let earlier = try arrive(WakeSample.envelope(5), request, second).reach
        #expect(earlier.quietBefore == 5 && earlier.firstWaking?.first == 5)
        let lost = rules.lostAlert(at: 6, at: now, knowing: WakeFacts(reach: second)).reach
        #expect(lost.quietBefore == 6 && lost.firstWaking == nil)
        #expect(WakeSample.reach().following(second).firstWaking == span)
    }

    @Test func `the first message that wakes is known after a search`() {
        var reach = WakeSample.reach()
        var search = FirstWaking(from: 0, at: now)
        let isOver = search.saw(WaitingEnvelope(wake: .background, expiresAt: now.adding(seconds: 9)), at: 4)
        #expect(isOver)
        reach.note(search)
        #expect(reach.quietBefore == 4 && reach.firstWaking == search.found && search.found != nil)
        search = FirstWaking(from: 4, at: now)
        let isThere = search.saw(nil, at: 4)
        #expect(!isThere)
        reach.note(search)
        #expect(reach.quietBefore == .max && reach.firstWaking == nil)
    }

    @Test(arguments: [(-1, true), (0, false), (1, false)] as [(Int64, Bool)])
    func `a due wake is moved to an earlier time, and never to a later one`(milliseconds: Int64, isEarlier: Bool) throws {
        let reach = WakeSample.reach(DeviceWake(dueAt: now.adding(seconds: 10)))
        let wanted = now.adding(seconds: 10).adding(milliseconds: milliseconds)
        let ruling = try arrive(WakeSample.envelope(1), WakeRequest(.background, dueAt: wanted), reach)
        let row = isEarlier ? WakeChanges.Row.due(WakeSample.queue, wanted, at: now) : nil
        let dueAt = isEarlier ? wanted : now.adding(seconds: 10)
        #expect(ruling.changes.row == row)
        #expect(ruling.reach.wake?.dueAt == dueAt)
    }

    @Test func `the pace of wakes limits the next one`() throws {
        let reach = WakeSample.reach(DeviceWake(pace: WakeSample.pace(1, pushed: -100)))
        let ruling = try arrive(WakeSample.envelope(1), WakeRequest(.background, dueAt: now), reach)
        #expect(ruling.changes.row == .due(WakeSample.queue, now.adding(seconds: 1100), at: now))
        #expect(ruling.reach.wake?.pace == WakeSample.pace(1, pushed: -100))
    }

    @Test func `a pending wake covers the messages that arrive meanwhile`() throws {
        let reach = WakeSample.reach(DeviceWake(isUnderWay: true))
        let ruling = try arrive(WakeSample.envelope(1), WakeRequest(.background, dueAt: now), reach)
        #expect(ruling.mode == .background)
        #expect(ruling.changes == WakeChanges())
    }

    // MARK: Alerts

    @Test func `a message is shown if its app has a text, and wakes in the background if not`() throws {
        let (envelope, request) = (WakeSample.envelope(3, ttl: 50), WakeRequest(.alert, dueAt: now, isShortened: true))
        let facts = WakeFacts(reach: WakeSample.reach())
        #expect(rules.arrived(envelope, request, knowing: facts) == .needs(.alertText))
        let shown = try arrive(envelope, request, WakeSample.reach(), hasText: true)
        #expect(shown.mode == .alert)
        let span = PushSpan(first: 3, last: 3, expiresAt: now.adding(seconds: 50))
        #expect(
            shown.changes.push
                == NewPush(.alert, in: WakeSample.queue, for: span, .scheduled, dueAt: now, at: now, isShortened: true))
        #expect(shown.changes.row == nil)
        #expect(shown.reach.alerts == 1 && shown.reach.triggers == 0 && shown.reach.lastAlertAt == now)
        let woken = try arrive(envelope, request, WakeSample.reach(), hasText: false)
        #expect(woken.mode == .background && woken.changes.push == nil && !woken.changes.isFolded)
        #expect(woken.changes.row == .due(WakeSample.queue, now, at: now))
    }

    @Test func `a push with the text of a subscription needs no text of the app`() throws {
        for isUnconditional in [false, true] {
            let request = WakeRequest(.alert, dueAt: now, isUnconditional: isUnconditional, needsAlertText: false)
            var reach = WakeSample.reach()
            reach.lastAlertAt = now
            let ruling = try arrive(WakeSample.fired(3), request, reach)
            let kind = isUnconditional ? PushKind.unconditional : PushKind.trigger
            #expect(ruling.changes.push?.kind == kind)
            #expect(ruling.changes.push?.dueAt == now, "it is not paced")
            #expect(ruling.reach.triggers == 1 && ruling.reach.alerts == 0 && ruling.reach.lastAlertAt == now)
        }
    }

    @Test func `alerts beyond the limit are one wake`() throws {
        let request = WakeRequest(.alert, dueAt: now, needsAlertText: false)
        var reach = WakeSample.reach()
        (reach.alerts, reach.triggers) = (PushLimits.alertsPerDevice - 1, PushLimits.triggersPerDevice - 1)
        #expect(try arrive(WakeSample.envelope(1), request, reach).mode == .alert)
        #expect(try arrive(WakeSample.fired(1), request, reach).mode == .alert)
        (reach.alerts, reach.triggers) = (PushLimits.alertsPerDevice, PushLimits.triggersPerDevice - 1)
        let message = try arrive(WakeSample.envelope(1), request, reach)
        #expect(message.mode == .background && message.changes.isFolded && message.changes.push == nil)
        #expect(message.changes.row == .due(WakeSample.queue, now, at: now))
        #expect(try arrive(WakeSample.fired(1), request, reach).mode == .alert, "each kind has its own limit")
        (reach.alerts, reach.triggers) = (0, PushLimits.triggersPerDevice)
        #expect(try arrive(WakeSample.fired(1), request, reach).changes.isFolded)
        #expect(try arrive(WakeSample.envelope(1), request, reach).mode == .alert)
    }

    @Test(
        arguments: [(-2000, 0), (-1000, 0), (-999, 1), (0, 1000), (19_999, 20_999), (20_000, 0)] as [(Int64, Int64)])
    func `alerts of messages are one second apart, unless the clock was set back`(last: Int64, due: Int64) throws {
        var reach = WakeSample.reach()
        reach.lastAlertAt = now.adding(milliseconds: last)
        let request = WakeRequest(.alert, dueAt: now, needsAlertText: false)
        let ruling = try arrive(WakeSample.envelope(1), request, reach)
        #expect(ruling.changes.push?.dueAt == now.adding(milliseconds: due))
        #expect(ruling.reach.lastAlertAt == now.adding(milliseconds: due))
    }
}
