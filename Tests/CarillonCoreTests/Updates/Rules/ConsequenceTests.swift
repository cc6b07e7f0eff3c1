import CarillonCore
import CarillonWire
import Testing

struct ConsequenceTests {
    private let rules = CompletionRules()
    private let now = Sample.now

    private func completion(
        _ update: Int64, _ machine: CompletionMachine = CompletionMachine(), orderKey: String? = nil
    ) -> Completion {
        let key = CompletionKey(update: UpdateSerial(update), binding: BindingSerial(3), entry: 1)
        return Completion(key: key, machine: machine, changedAt: now.adding(seconds: -9), orderKey: orderKey)
    }

    /// A completion that becomes another state.
    private func step(
        _ before: Completion, _ state: CompletionMachine.State?, coalescer: Int64? = nil
    ) -> CompletionStep {
        var after = before
        after.machine = CompletionMachine(state ?? .gone, attempt: before.machine.attempt)
        return CompletionStep(
            before: before, after: state == nil ? nil : after, coalescer: coalescer.map { UpdateSerial($0) })
    }

    private func given(_ update: Int64 = 5, orderKey: String? = "a") -> Completion {
        completion(update, CompletionMachine(.waiting, attempt: 1), orderKey: orderKey)
    }

    private func questions(_ step: CompletionStep, _ facts: ConsequenceFacts = ConsequenceFacts()) -> ConsequenceQuestions? {
        guard case .needs(let questions) = rules.consequences(of: step, at: now, knowing: facts) else { return nil }
        return questions
    }

    private func changes(_ step: CompletionStep, _ facts: ConsequenceFacts = ConsequenceFacts()) -> CompletionChanges? {
        guard case .decided(let changes) = rules.consequences(of: step, at: now, knowing: facts) else { return nil }
        return changes
    }

    private func facts(
        firsts: [String: [Completion]] = [:], coalesced: [ConsequenceFacts.Coalesced]? = [], isContent: Bool? = nil,
        isBindingEnded: Bool = false
    ) -> ConsequenceFacts {
        var facts = ConsequenceFacts()
        facts.firsts = Dictionary(uniqueKeysWithValues: firsts.map { (OrderKey($0), $1) })
        facts.coalesced = coalesced
        facts.content = isContent.map { ConsequenceFacts.Content(isContent: $0, isBindingEnded: isBindingEnded) }
        return facts
    }

    // MARK: Questions

    @Test(arguments: CompletionMachine.State.allCases)
    func `the new state determines the facts that are read`(state: CompletionMachine.State) {
        var expected = ConsequenceQuestions()
        if state.isFinal || state == .parked { expected.orderKeys = [OrderKey("a")] }
        expected.coalesced = [.parked, .withdrawn, .superseded, .gone].contains(state)
        expected.content = state == .expired
        #expect(questions(step(given(), state)) == (expected.isEmpty ? nil : expected))
        expected.orderKeys = []
        #expect(questions(step(given(orderKey: nil), state)) == (expected.isEmpty ? nil : expected))
        let done = completion(5, CompletionMachine(.done, attempt: 1), orderKey: "a")
        #expect(questions(step(done, state)) == nil, "it had ended before")
    }

    @Test func `removed content is queried like content that has left`() {
        #expect(questions(step(given(), nil)) == questions(step(given(), .gone)))
        let parked = completion(5, CompletionMachine(.parked, attempt: 1), orderKey: "a")
        var expected = ConsequenceQuestions()
        expected.coalesced = true
        #expect(questions(step(parked, nil)) == expected, "it delayed nothing")
    }

    @Test func `order keys of revived content are read next`() {
        let coalesced = [
            ConsequenceFacts.Coalesced(completion: completion(1, orderKey: "b"), isExpired: false),
            ConsequenceFacts.Coalesced(completion: completion(2, orderKey: "c"), isExpired: true),
        ]
        var expected = ConsequenceQuestions()
        expected.orderKeys = [OrderKey("b")]
        #expect(questions(step(given(), .withdrawn), facts(firsts: ["a": []], coalesced: coalesced)) == expected)
    }

    // MARK: Order keys

    @Test func `the next update of an order key is due if it was never delivered`() {
        func next(_ machine: CompletionMachine) -> Completion? {
            let next = completion(6, machine, orderKey: "a")
            return changes(step(given(), .done), facts(firsts: ["a": [next]], coalesced: nil))?.changed[next.key]
        }
        let released = next(CompletionMachine())
        #expect(released?.machine == CompletionMachine(dueAt: now) && released?.changedAt == now)
        #expect(next(CompletionMachine(.waiting, attempt: 1)) == nil)
        #expect(next(CompletionMachine(.waiting, dueAt: now.adding(seconds: 9))) == nil)
        #expect(next(CompletionMachine(.failed, attempt: 1, dueAt: now)) == nil)
        let alone = changes(step(given(), .done), facts(firsts: ["a": []], coalesced: nil))
        #expect(alone?.changed.count == 1 && alone?.removed == nil)
    }

    @Test func `canonically equivalent texts are different order keys`() {
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        let coalesced = ConsequenceFacts.Coalesced(
            completion: completion(1, CompletionMachine(.superseded), orderKey: decomposed), isExpired: false)
        let step = step(given(orderKey: composed), .withdrawn)
        var known = facts(coalesced: [coalesced])
        #expect(questions(step, known)?.orderKeys.count == 2)
        let next = completion(6, orderKey: composed)
        known.firsts = [OrderKey(composed): [next], OrderKey(decomposed): []]
        let changed = changes(step, known)?.changed
        #expect(changed?[next.key]?.machine == CompletionMachine(dueAt: now))
        #expect(changed?[coalesced.completion.key]?.machine == CompletionMachine(dueAt: now))
    }

    @Test func `a removed completion changes only others`() {
        let next = completion(6, orderKey: "a")
        let changes = changes(step(given(), nil), facts(firsts: ["a": [next]]))
        #expect(changes?.removed == given().key && changes?.changed.count == 1)
        #expect(changes?.changed[next.key]?.machine.dueAt == now)
    }

    // MARK: Content

    @Test func `coalesced content is delivered again by itself when its replacement fails`() {
        let superseded = CompletionMachine(.superseded, attempt: 1, reason: "absorbed")
        let (free, first, second) = (
            completion(1, superseded), completion(2, superseded, orderKey: "b"), completion(3, superseded, orderKey: "b")
        )
        let coalesced = [free, first, second].map { ConsequenceFacts.Coalesced(completion: $0, isExpired: false) }
        let changes = changes(
            step(given(orderKey: nil), .withdrawn), facts(firsts: ["b": []], coalesced: coalesced))
        #expect(changes?.revived == [free.key, first.key, second.key])
        #expect(changes?.changed[free.key]?.machine == CompletionMachine(dueAt: now))
        #expect(changes?.changed[first.key]?.machine == CompletionMachine(dueAt: now))
        #expect(changes?.changed[second.key]?.machine == CompletionMachine(), "it waits behind the first")
        #expect(changes?.needsResync == nil)
    }

    @Test func `revived content is behind an earlier one of its order key, and before a later one`() {
        let revived = ConsequenceFacts.Coalesced(
            completion: completion(4, CompletionMachine(.superseded), orderKey: "b"), isExpired: false)
        func machine(behind update: Int64) -> CompletionMachine? {
            let other = given(update, orderKey: "b")
            let facts = facts(firsts: ["b": [other]], coalesced: [revived])
            return changes(step(given(orderKey: nil), .gone), facts)?.changed[revived.completion.key]?.machine
        }
        #expect(machine(behind: 3) == CompletionMachine())
        #expect(machine(behind: 6) == CompletionMachine(dueAt: now))
    }

    @Test func `coalesced content that expired is to be fetched`() {
        let expired = ConsequenceFacts.Coalesced(completion: completion(1, CompletionMachine(.superseded)), isExpired: true)
        let changes = changes(step(given(orderKey: nil), .gone), facts(coalesced: [expired]))
        #expect(changes?.needsResync == BindingSerial(3) && changes?.revived.isEmpty == true)
    }

    @Test func `a coalescing completion replaces everything that the coalesced content replaced`() {
        let step = step(given(orderKey: nil), .superseded, coalescer: 9)
        #expect(questions(step) == nil)
        #expect(changes(step)?.coalesced == CompletionChanges.Coalescence(given().key, by: UpdateSerial(9)))
    }

    @Test func `content that expires is missed if its device may not have it`() {
        func isMissed(_ before: CompletionMachine, isContent: Bool = true, isBindingEnded: Bool = false) -> Bool {
            let known = facts(coalesced: nil, isContent: isContent, isBindingEnded: isBindingEnded)
            return changes(step(completion(5, before), .expired), known)?.needsResync != nil
        }
        let later = now.adding(milliseconds: 1)
        #expect(isMissed(CompletionMachine(.waiting, attempt: 1)))
        #expect(isMissed(CompletionMachine(.failed, attempt: 1, dueAt: later)))
        #expect(isMissed(CompletionMachine(.stored, attempt: 1, dueAt: now)))
        let stored = CompletionMachine(.stored, attempt: 1, dueAt: later)
        #expect(!isMissed(stored))
        #expect(isMissed(stored, isBindingEnded: true))
        #expect(!isMissed(stored, isContent: false, isBindingEnded: true))
        #expect(!isMissed(CompletionMachine(.waiting, attempt: 1), isContent: false))
        #expect(!isMissed(CompletionMachine(.done, attempt: 1), isBindingEnded: true))
    }
}
