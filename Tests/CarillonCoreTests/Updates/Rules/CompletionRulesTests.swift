import CarillonCore
import CarillonWire
import Testing

struct CompletionRulesTests {
    private let rules = CompletionRules()
    private let now = Sample.now
    private let key = CompletionKey(update: UpdateSerial(5), binding: BindingSerial(3), entry: 1)

    private func completion(
        _ machine: CompletionMachine = CompletionMachine(), entry: Int = 1, orderKey: String? = nil,
        hasLeftAudience: Bool = false
    ) -> Completion {
        var key = key
        key.entry = entry
        return Completion(
            key: key, machine: machine, changedAt: now.adding(seconds: -9), orderKey: orderKey,
            hasLeftAudience: hasLeftAudience)
    }

    private func standing(
        _ status: Update.Status = .live, expires: Int64 = 1, isPaused: Bool = false, isContent: Bool = false
    ) -> UpdateState {
        UpdateState(
            status: status, expiresAt: now.adding(milliseconds: expires), isPaused: isPaused, isContent: isContent)
    }

    private func changed(_ completion: Completion, _ machine: CompletionMachine, hasLeftAudience: Bool? = nil) -> Completion
    {
        var changed = completion
        changed.machine = machine
        changed.changedAt = now
        changed.hasLeftAudience = hasLeftAudience ?? completion.hasLeftAudience
        return changed
    }

    // MARK: Offers

    private func offer(_ attempt: Int = 1, isAgain: Bool = false, revision: Int64 = 7, entry: Int = 1) -> UpdateOffer {
        var key = key
        key.entry = entry
        return UpdateOffer(key: key, revision: revision, isAgain: isAgain, attempt: attempt, orderKey: "a", at: now)
    }

    private func counts(_ offer: UpdateOffer, _ update: UpdateState?, on completion: Completion? = nil) -> Bool {
        let facts = CompletionFacts(completion: completion, update: update, revision: 7)
        return rules.offer(offer, knowing: facts) != nil
    }

    @Test func `an offer counts for a live update and the revision of a present binding`() {
        #expect(counts(offer(), standing()))
        #expect(!counts(offer(), standing(expires: 0)))
        #expect(!counts(offer(), standing(.withdrawn)))
        #expect(!counts(offer(), standing(isPaused: true)))
        #expect(!counts(offer(), nil))
        #expect(!counts(offer(revision: 6), standing()))
        #expect(!counts(offer(revision: 8), standing()))
        let ended = CompletionFacts(update: standing(), revision: nil)
        #expect(rules.offer(offer(), knowing: ended) == nil)
    }

    @Test func `a first offer counts once, and makes a completion`() {
        let facts = CompletionFacts(update: standing(), revision: 7)
        var made = completion(CompletionMachine(.waiting, attempt: 1), orderKey: "a")
        made.changedAt = now
        let changes = rules.offer(offer(), knowing: facts)
        #expect(changes?.inserted == made && changes?.forgottenEntry == nil && changes?.changed.isEmpty == true)
        #expect(!counts(offer(2), standing()))
        #expect(!counts(offer(), standing(), on: completion(CompletionMachine(.failed, dueAt: now))))
        #expect(!counts(offer(isAgain: true), standing()))
    }

    @Test func `another offer counts for a completion that is due, and for its next attempt`() {
        func again(_ machine: CompletionMachine, _ attempt: Int = 3, hasLeftAudience: Bool = false) -> Bool {
            counts(offer(attempt, isAgain: true), standing(), on: completion(machine, hasLeftAudience: hasLeftAudience))
        }
        let due = CompletionMachine(.stored, attempt: 2, isReceived: true, dueAt: now.adding(seconds: 5))
        #expect(again(due))
        #expect(!again(due, 2))
        #expect(!again(due, 4))
        #expect(!again(due, hasLeftAudience: true))
        #expect(!again(CompletionMachine(.stored, attempt: 2)), "it is not due")
        #expect(!again(CompletionMachine(.done, attempt: 2, dueAt: now)))
        let facts = CompletionFacts(completion: completion(due), update: standing(), revision: 7)
        let changes = rules.offer(offer(3, isAgain: true), knowing: facts)
        let expected = changed(completion(due), CompletionMachine(.waiting, attempt: 3, isReceived: true))
        #expect(changes?.changed == [key: expected] && changes?.inserted == nil)
    }

    @Test(arguments: [(10, nil), (11, 1), (14, 4)] as [(Int, Int?)])
    func `ten entries of an update are known`(entry: Int, forgotten: Int?) {
        let facts = CompletionFacts(update: standing(), revision: 7)
        #expect(rules.offer(offer(entry: entry), knowing: facts)?.forgottenEntry == forgotten)
    }

    // MARK: Completions without envelopes

    @Test func `a completion without an envelope is added once, while its update lives`() {
        let new = completion(orderKey: "a")
        let facts = NewCompletionFacts(update: standing(), isBlocked: true)
        #expect(rules.evaluated(new, at: now, knowing: facts)?.inserted == new)
        #expect(rules.evaluated(new, at: now, knowing: NewCompletionFacts(update: standing(), isKnown: true)) == nil)
        #expect(rules.evaluated(new, at: now, knowing: NewCompletionFacts(update: standing(expires: 0))) == nil)
        #expect(rules.evaluated(new, at: now, knowing: NewCompletionFacts(update: standing(.superseded))) == nil)
        #expect(rules.evaluated(new, at: now, knowing: NewCompletionFacts()) == nil)
        let paused = NewCompletionFacts(update: standing(isPaused: true), isBlocked: true)
        #expect(rules.evaluated(new, at: now, knowing: paused)?.inserted == new)
    }

    @Test func `a completion that nothing blocks is due`() {
        func dueAt(
            _ orderKey: String?, _ machine: CompletionMachine = CompletionMachine(), isBlocked: Bool = false
        ) -> Timestamp? {
            let facts = NewCompletionFacts(update: standing(), isBlocked: isBlocked)
            return rules.evaluated(completion(machine, orderKey: orderKey), at: now, knowing: facts)?.inserted?.machine.dueAt
        }
        #expect(dueAt("a") == now)
        #expect(dueAt("a", isBlocked: true) == nil)
        #expect(dueAt(nil) == nil)
        #expect(dueAt("a", CompletionMachine(.unsupported)) == nil)
    }

    @Test func `a device receives one entry that asks it to fetch everything, until it receives it`() {
        func entry(_ last: Completion?) -> Int? {
            rules.resync(key.update, of: key.binding, at: now, knowing: last)?.inserted?.key.entry
        }
        #expect(entry(nil) == 1)
        #expect(entry(completion(CompletionMachine(.waiting, attempt: 1), entry: 4)) == nil)
        #expect(entry(completion(CompletionMachine(.waiting, attempt: 2, isReceived: true), entry: 4)) == 5)
        #expect(entry(completion(CompletionMachine(.done, attempt: 1, isReceived: true), entry: 4)) == 5)
        let made = rules.resync(key.update, of: key.binding, at: now, knowing: nil)?.inserted
        #expect(made?.machine == CompletionMachine(dueAt: now) && made?.changedAt == now)
    }

    // MARK: Steps

    @Test func `a completion ends once, and its envelope leaves the inbox`() {
        let waiting = completion(CompletionMachine(.waiting, attempt: 1))
        let after = changed(waiting, CompletionMachine(.gone, attempt: 1))
        #expect(rules.end(waiting, as: .gone, at: now) == CompletionStep(before: waiting, after: after, takesOut: true))
        let stored = completion(CompletionMachine(.stored, attempt: 1, dueAt: now))
        #expect(rules.end(stored, as: .gone, at: now)?.takesOut == false)
        #expect(rules.end(after, as: .expired, at: now) == nil)
    }

    @Test func `a device is notified of an end once, and only while its update is known`() {
        func canEnd(_ state: CompletionMachine.State, _ update: UpdateState?) -> Bool {
            rules.canEnd(knowing: CompletionFacts(completion: completion(CompletionMachine(state)), update: update))
        }
        #expect(canEnd(.waiting, standing(.withdrawn)) && canEnd(.parked, standing(.superseded)))
        #expect(!canEnd(.gone, standing(.withdrawn)))
        #expect(!canEnd(.waiting, nil))
        #expect(!rules.canEnd(knowing: CompletionFacts(update: standing(.withdrawn))))
    }

    @Test func `an envelope that leaves the inbox reports the result of its completion`() {
        let waiting = completion(CompletionMachine(.waiting, attempt: 1))
        func state(_ outcome: Outcome, _ before: Completion) -> CompletionMachine.State? {
            rules.finished(before, FinalOutcome(outcome, at: now))?.after?.machine.state
        }
        #expect(state(.acknowledged, waiting) == .stored)
        #expect(state(.unsupported, waiting) == .unsupported)
        #expect(state(.failed, waiting) == .failed)
        for outcome in [Outcome.cancelled, .expired, .gone] {
            let step = rules.finished(waiting, FinalOutcome(outcome, at: now))
            #expect(step?.after == changed(waiting, CompletionMachine(.waiting, attempt: 1, dueAt: now)))
        }
        #expect(state(.replaced, waiting) == nil && state(.dropped, waiting) == nil)
        #expect(state(.acknowledged, completion(CompletionMachine(.done, attempt: 1))) == nil)
    }

    @Test func `a completion is put off only while it is due and its binding has the revision`() {
        func can(_ machine: CompletionMachine?, _ revision: Int64? = 7) -> Bool {
            let facts = CompletionFacts(completion: machine.map { completion($0) }, revision: revision)
            return rules.canPutOff(revision: 7, knowing: facts)
        }
        let due = CompletionMachine(.waiting, attempt: 1, dueAt: now)
        #expect(can(due))
        #expect(!can(due, 8) && !can(due, nil) && !can(nil) && !can(CompletionMachine(.waiting, attempt: 1)))
    }

    // MARK: Audiences

    @Test func `an update that was never received is forgotten when its device leaves, and others are marked`() {
        let waiting = completion(CompletionMachine(.waiting, attempt: 1))
        #expect(rules.leftAudience(waiting, at: now) == CompletionStep(before: waiting, after: nil, takesOut: true))
        let machine = CompletionMachine(.stored, attempt: 1, isReceived: true, dueAt: now.adding(seconds: 1))
        let stored = completion(machine)
        #expect(rules.leftAudience(stored, at: now)?.after == changed(stored, machine, hasLeftAudience: true))
        let done = completion(CompletionMachine(.done, attempt: 1, isReceived: true), hasLeftAudience: true)
        #expect(rules.leftAudience(done, at: now) == nil)
    }

    @Test func `a received update continues when its device returns, while the update is live`() {
        let gone = completion(CompletionMachine(.gone, attempt: 1, isReceived: true), hasLeftAudience: true)
        func returned(_ completion: Completion?, _ update: UpdateState?) -> Completion? {
            rules.returned(at: now, knowing: CompletionFacts(completion: completion, update: update))?.after
        }
        let back = CompletionMachine(.waiting, attempt: 1, isReceived: true, dueAt: now)
        #expect(returned(gone, standing()) == changed(gone, back, hasLeftAudience: false))
        #expect(returned(gone, standing(expires: 0)) == nil)
        #expect(returned(gone, standing(.withdrawn)) == nil)
        #expect(returned(gone, nil) == nil)
        #expect(returned(completion(CompletionMachine(.gone)), standing()) == nil)
        #expect(returned(nil, standing()) == nil)
    }

    // MARK: Results and releases

    @Test func `a late result determines whether expired content is fetched`() {
        func ruling(
            _ result: UpdateResult, _ state: CompletionMachine.State = .expired, isContent: Bool = true
        ) -> CompletionRules.ReportRuling {
            let reported = ReportedResult(update: UpdateID(Bytes16(high: 4, low: 1)), entry: 1, attempt: nil, result: result)
            let completion = completion(CompletionMachine(state, attempt: 1))
            return rules.report(reported, of: completion, isContent: isContent, at: now)
        }
        let failed = UpdateResult.failed(isPermanent: false, reason: nil)
        #expect(ruling(failed) == .lateFailure)
        #expect(ruling(failed, isContent: false) == .late)
        #expect(ruling(failed, .withdrawn) == .late)
        #expect(ruling(.done) == .lateSuccess)
        #expect(ruling(.doneWith(reason: "almost"), isContent: false) == .lateSuccess)
        #expect(ruling(.unsupported) == .late)
        #expect(ruling(.deferred(seconds: nil, reason: nil)) == .late)
        guard case .taken(let step) = ruling(.done, .waiting) else {
            Issue.record("the result was not taken")
            return
        }
        #expect(step.after?.machine.state == .done && step.takesOut)
    }

    @Test func `an ended binding is released until nothing is left, or it begins again`() {
        let waiting = completion(CompletionMachine(.waiting, attempt: 1))
        #expect(rules.release([], needsCleanup: true, at: now) == .nothingLeft)
        #expect(rules.release([waiting], needsCleanup: false, at: now) == .stops)
        let step = CompletionStep(
            before: waiting, after: changed(waiting, CompletionMachine(.gone, attempt: 1)), takesOut: true)
        #expect(rules.release([waiting], needsCleanup: true, at: now) == .ends([step]))
    }
}
