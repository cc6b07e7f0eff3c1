import CarillonCore
import CarillonWire
import Testing

/// The decisions on the ends of pushes.
struct EndRulesTests {
    private let now = WakeSample.now
    private let rules = OutboxRules(retentionSeconds: 100)

    private func end(_ verdict: PushEnd.Verdict, revision: Int64 = 4, isElsewhere: Bool = false) throws -> PushEnd {
        let token = try PushToken(hexadecimal: "aa01")
        let push = LeasedPush(
            lease: WorkLease(work: 5, fence: 8), id: Bytes16(high: 1, low: 2), kind: .alert, device: Sample.device,
            queue: WakeSample.queue, token: token, addressRevision: revision, attempt: 1, isElsewhere: isElsewhere,
            expiresAt: now.adding(seconds: 900), content: .wake)
        return PushEnd(push, verdict, at: now)
    }

    private func facts(_ registration: DeviceRegistration? = nil, isRead: Bool = false) -> EndFacts {
        var facts = EndFacts()
        facts.registration = registration
        facts.isRegistrationRead = isRead || registration != nil
        return facts
    }

    private func registration(_ environment: PushEnvironment = .production, revision: Int64 = 4) throws
        -> DeviceRegistration
    {
        var registration = DeviceRegistration(device: Sample.device, at: now.adding(seconds: -50))
        registration.profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: environment)
        registration.addressRevision = revision
        return registration
    }

    private func finished(_ state: PushState, _ reason: String? = nil, awaitsAddress: Bool = false) -> PushChange {
        .finished(
            rules.finish(
                .alert, as: state, because: reason, awaitsAddress: awaitsAddress, expiresAt: now.adding(seconds: 900),
                at: now))
    }

    private let again = PushEnd.Verdict.again(at: WakeSample.now.adding(seconds: 30), isSpent: true, reason: "busy")
    private let dead = PushEnd.Verdict.tokenDead(reason: "Unregistered", since: nil)

    @Test func `an accepted push is finished, and its token belongs to the environment that accepted it`() throws {
        #expect(try rules.end(end(.handed), knowing: facts()) == .decided(.init(finished(.handed))))
        var elsewhere = OutboxRules.EndRuling(finished(.handed))
        elsewhere.keepsEnvironment = true
        let found = try end(.handed, isElsewhere: true)
        #expect(rules.end(found, knowing: facts()) == .decided(elsewhere))
    }

    @Test func `a push is tried again, and an attempt counts if it was spent`() throws {
        let current = try facts(registration())
        for isSpent in [true, false] {
            let dueAt = now.adding(seconds: 30)
            let ended = try end(.again(at: dueAt, isSpent: isSpent, reason: "busy"))
            #expect(rules.end(ended, knowing: facts()) == .needsRegistration)
            let change = PushChange.retried(dueAt, reason: "busy", attempts: isSpent ? 0 : 1, at: now)
            #expect(rules.end(ended, knowing: current) == .decided(.init(change)))
            #expect(rules.end(ended, knowing: facts(isRead: true)) == .decided(.init(change)))
        }
        let elsewhere = OutboxRules.EndRuling(.elsewhere(WakeSample.sandbox, at: now))
        #expect(try rules.end(end(.elsewhere), knowing: current) == .decided(elsewhere))
        var test = try end(.elsewhere)
        test.queue.environment = .test
        #expect(rules.end(test, knowing: current) == .decided(.init()), "there is no other environment")
    }

    @Test func `the state of an earlier address is reset for the present one`() throws {
        let other = try facts(registration(.sandbox, revision: 5))
        let restarted = OutboxRules.EndVerdict.decided(.init(.restarted(WakeSample.sandbox, at: now)))
        for verdict in [again, dead, .elsewhere, .parked(reason: "Topic", isOfAddress: true)] {
            #expect(try rules.end(end(verdict), knowing: other) == restarted, "\(verdict)")
        }
        #expect(try rules.end(end(.handed), knowing: other) == .decided(.init(finished(.handed))))
        let parked = OutboxRules.EndRuling(finished(.parked, "BadTopic"))
        #expect(try rules.end(end(.parked(reason: "BadTopic")), knowing: facts()) == .decided(parked))
        let ofAddress = OutboxRules.EndRuling(finished(.parked, "Topic", awaitsAddress: true))
        let ended = try end(.parked(reason: "Topic", isOfAddress: true))
        #expect(try rules.end(ended, knowing: facts(registration())) == .decided(ofAddress))
        var suspended = other
        suspended.registration?.status = .suspended(.byOperator)
        #expect(rules.end(ended, knowing: suspended) == .decided(ofAddress))
        suspended = other
        suspended.registration?.profile.address = nil
        #expect(rules.end(ended, knowing: suspended) == .decided(ofAddress))
    }

    @Test func `a dead token suspends its device`() throws {
        let current = try registration()
        var ruling = OutboxRules.EndRuling(finished(.rejected, "Unregistered", awaitsAddress: true))
        ruling.suspended = RegistrationRules.suspend(current, because: .tokenDead, at: now)
        #expect(ruling.suspended != nil)
        #expect(try rules.end(end(dead), knowing: facts(current)) == .decided(ruling))
        ruling.suspended = nil
        #expect(try rules.end(end(dead), knowing: facts(isRead: true)) == .decided(ruling), "the device is gone")
        var suspended = current
        suspended.status = .suspended(.byOperator)
        #expect(try rules.end(end(dead), knowing: facts(suspended)) == .decided(ruling), "it is suspended already")
    }

    @Test(arguments: [(-51, false), (-50, true), (0, true)] as [(Int64, Bool)])
    func `a token that was confirmed since is tried again later`(since: Int64, isDead: Bool) throws {
        let ended = try end(.tokenDead(reason: "Unregistered", since: now.adding(seconds: since)))
        let current = try facts(registration())
        guard case .decided(let ruling) = rules.end(ended, knowing: current) else {
            Issue.record("more is asked")
            return
        }
        let isSuspended = ruling.suspended != nil
        #expect(isSuspended == isDead)
        let retried = PushChange.retried(
            now.adding(seconds: PushRules.staleSeconds), reason: "Unregistered", attempts: 0, at: now)
        let isRetried = ruling.change == retried
        #expect(isRetried == !isDead)
    }

    @Test func `a push is in the state of its end, or scheduled if it is tried again`() {
        for state in [PushState.handed, .rejected, .parked] {
            #expect(OutboxRules.EndRuling(finished(state)).state == state)
        }
        let changes: [PushChange] = [
            .retried(now, reason: "busy", attempts: 0, at: now), .elsewhere(WakeSample.sandbox, at: now),
            .restarted(WakeSample.sandbox, at: now),
        ]
        for change in changes { #expect(OutboxRules.EndRuling(change).state == .scheduled, "\(change)") }
    }

    @Test func `a push that cannot be read is parked`() throws {
        let ruling = try rules.park(end(.handed), because: OutboxRules.unreadable)
        #expect(ruling == OutboxRules.EndRuling(finished(.parked, "unreadable")))
    }
}
