import CarillonCore
import CarillonWire
import Testing

struct BindingRulesTests {
    private let rules = BindingRules(mostOfDevice: 3)
    private let now = Sample.now
    private let ada = UserID("ada")
    private let nothingMissed = MissedContent(endedWithBinding: false, isWithoutResult: false)

    private func owner(_ user: UserID?, isAppDeleted: Bool = false) -> BindingOwner {
        BindingOwner(device: Sample.device, app: AppSerial(4), user: user, isAppDeleted: isAppDeleted)
    }

    private func row(
        _ serial: Int64, isOwn: Bool = false, needsResync: Bool = false, ended seconds: Int64? = nil
    ) -> BindingRow {
        BindingRow(
            serial: BindingSerial(serial), isOwn: isOwn, revision: 7, needsResync: needsResync,
            endedAt: seconds.map { now.adding(seconds: $0) })
    }

    private func end(_ serial: Int64, needsCleanup: Bool = true) -> BindingChanges.End {
        BindingChanges.End(binding: BindingSerial(serial), revision: 8, needsCleanup: needsCleanup, at: now)
    }

    private func changes(
        ended: [BindingChanges.End] = [], removed: Int64? = nil, _ beginning: BindingChanges.Beginning? = nil
    ) -> BindingChanges {
        var changes = BindingChanges()
        changes.ended = ended
        changes.removed = removed.map { BindingSerial($0) }
        changes.beginning = beginning
        return changes
    }

    private func new(_ user: UserID?, _ profile: String = "main") -> BindingChanges.Beginning {
        .new(BindingChanges.New(owner: owner(user), profile: profile, at: now))
    }

    private func again(
        _ serial: Int64, needsResync: Bool = false, expiresContent: Bool = false
    ) -> BindingChanges.Beginning {
        .again(
            BindingChanges.Again(
                binding: BindingSerial(serial), revision: 8, needsResync: needsResync, expiresContent: expiresContent,
                at: now))
    }

    private func begin(_ facts: BeginFacts) -> BindingRules.BeginVerdict {
        rules.begin("main", at: now, knowing: facts)
    }

    // MARK: Beginnings

    @Test func `a device without bindings gets one`() {
        #expect(begin(BeginFacts(owner: owner(ada))) == .begins(changes(new(ada))))
        #expect(begin(BeginFacts(owner: owner(nil))) == .begins(changes(new(nil))))
    }

    @Test func `the present binding of the user and the profile continues`() {
        let facts = BeginFacts(
            owner: owner(ada), bindings: [row(1, ended: -9), row(2, isOwn: true), row(3, ended: -9)])
        #expect(begin(facts) == .present(BindingSerial(2)))
        var deleted = facts
        deleted.owner?.isAppDeleted = true
        #expect(begin(deleted) == .present(BindingSerial(2)))
    }

    @Test func `nothing begins without a device or its app`() {
        #expect(begin(BeginFacts()) == .refused)
        #expect(begin(BeginFacts(owner: owner(ada, isAppDeleted: true))) == .refused)
        let ended = BeginFacts(owner: owner(ada, isAppDeleted: true), bindings: [row(1, isOwn: true, ended: -9)])
        #expect(begin(ended) == .refused)
    }

    @Test func `a binding of another profile or user ends`() {
        let facts = BeginFacts(owner: owner(ada), bindings: [row(1), row(2, ended: -9)])
        #expect(begin(facts) == .begins(changes(ended: [end(1)], new(ada))))
    }

    @Test func `an ended binding of the user and the profile begins again`() {
        var facts = BeginFacts(
            owner: owner(nil), bindings: [row(1, isOwn: true, ended: -9), row(2), row(3, ended: 0)])
        #expect(begin(facts) == .needsMissedContent(of: BindingSerial(1)))
        facts.missed = nothingMissed
        #expect(begin(facts) == .begins(changes(ended: [end(2)], again(1))))
    }

    @Test func `missed content is to be fetched`() {
        var facts = BeginFacts(owner: owner(ada), bindings: [row(1, isOwn: true, ended: -9)])
        func verdict(_ endedWithBinding: Bool, _ isWithoutResult: Bool) -> BindingRules.BeginVerdict {
            facts.missed = MissedContent(endedWithBinding: endedWithBinding, isWithoutResult: isWithoutResult)
            return begin(facts)
        }
        let (both, first, second) = (verdict(true, true), verdict(true, false), verdict(false, true))
        #expect(both == .begins(changes(again(1, needsResync: true, expiresContent: true))))
        #expect(first == .begins(changes(again(1, needsResync: true, expiresContent: true))))
        #expect(second == .begins(changes(again(1, needsResync: true))))
        facts.bindings = [row(1, isOwn: true, needsResync: true, ended: -9)]
        let before = verdict(false, false)
        #expect(before == .begins(changes(again(1, needsResync: true))), "the binding missed it before")
    }

    // MARK: The limit of a device

    @Test func `a device has a limited number of bindings`() {
        let two = BeginFacts(owner: owner(ada), bindings: [row(1, ended: -9), row(2)])
        #expect(begin(two) == .begins(changes(ended: [end(2)], new(ada))))
        var three = two
        three.bindings.append(row(3, ended: -8))
        #expect(begin(three) == .needsUnfinished)
        three.unfinished = [BindingSerial(1), BindingSerial(2), BindingSerial(3)]
        #expect(begin(three) == .refused)
        three.bindings[0] = row(1, isOwn: true, ended: -9)
        #expect(begin(three) == .needsMissedContent(of: BindingSerial(1)), "it is one of them")
    }

    @Test func `the binding that was used least recently and has nothing unfinished is removed`() {
        var facts = BeginFacts(
            owner: owner(ada), bindings: [row(4, ended: -8), row(2), row(3, ended: -9)], unfinished: [])
        func removed(_ unfinished: Int64...) -> BindingRules.BeginVerdict {
            facts.unfinished = Set(unfinished.map { BindingSerial($0) })
            return begin(facts)
        }
        let (all, few, last) = (removed(), removed(3), removed(3, 4))
        #expect(all == .begins(changes(ended: [end(2)], removed: 3, new(ada))))
        #expect(few == .begins(changes(ended: [end(2)], removed: 4, new(ada))))
        #expect(last == .begins(changes(removed: 2, new(ada))), "it ends now")
        facts.bindings[0].endedAt = facts.bindings[2].endedAt
        let equal = removed()
        #expect(equal == .begins(changes(ended: [end(2)], removed: 3, new(ada))), "the lower number")
        facts.bindings[0].endedAt = now.adding(milliseconds: 1)
        let later = removed(3)
        #expect(later == .begins(changes(removed: 2, new(ada))), "the clock was set back")
    }

    @Test func `the limit of a server is that of its documentation`() {
        let rules = BindingRules()
        var facts = BeginFacts(owner: owner(ada), bindings: (Int64(1)...99).map { row($0, ended: -9) })
        #expect(rules.begin("main", at: now, knowing: facts) == .begins(changes(new(ada))))
        facts.bindings.append(row(100, ended: -9))
        #expect(rules.begin("main", at: now, knowing: facts) == .needsUnfinished)
    }

    // MARK: Users

    @Test func `the bindings of other users end with a change of the user`() {
        let rows = [row(1), row(2, isOwn: true), row(3), row(4, ended: -9)]
        let ended = rules.userChanged(at: now, knowing: rows)
        #expect(ended == changes(ended: [end(1, needsCleanup: false), end(3, needsCleanup: false)]))
        #expect(rules.userChanged(at: now, knowing: [row(2, isOwn: true)]) == BindingChanges())
    }

    // MARK: Parameters and places

    @Test func `a change of a binding increments its revision, and the log is evaluated anew`() {
        let binding = UpdateBinding(
            serial: BindingSerial(1), device: Sample.device, user: ada, profile: "main", revision: 7,
            parametersRevision: "r", values: ParameterValues(), locatedAt: now, kinds: ["popup"],
            cursor: AudienceCursor(UpdateSerial(5), rules: 2), seenTo: UpdateSerial(4), needsResync: true,
            receivedTo: ReceivedTo(all: 3, updates: 2))
        var expected = binding
        expected.revision = 8
        expected.cursor = .nowhere
        #expect(rules.changed(binding) == expected)
    }

    private func evaluated(
        _ place: Int64, rules version: Int64 = 2, isFull: Bool = false, of revision: Int64 = 7, lastExpired: Int64 = 0
    ) -> [Int64]? {
        let facts = CursorFacts(
            revision: 7, cursor: AudienceCursor(UpdateSerial(20), rules: 2), seenTo: UpdateSerial(10),
            lastExpired: UpdateSerial(lastExpired))
        let change = rules.evaluated(
            to: AudienceCursor(UpdateSerial(place), rules: version), isFull: isFull, of: revision, knowing: facts)
        return change.map { [$0.cursor.place.rawValue, $0.cursor.rules, $0.seenTo.rawValue] }
    }

    @Test func `the cursor moves forward under the same rules, and anywhere under others`() {
        #expect(evaluated(21) == [21, 2, 21])
        #expect(evaluated(20) == [20, 2, 20])
        #expect(evaluated(19) == [20, 2, 19])
        #expect(evaluated(19, rules: 3) == [19, 3, 19])
        #expect(evaluated(19, rules: 1) == [19, 1, 19])
    }

    @Test func `only a binding of the revision that did not end is evaluated`() {
        #expect(evaluated(21, of: 6) == nil)
        #expect(evaluated(21, of: 8) == nil)
        let place = AudienceCursor(UpdateSerial(21), rules: 2)
        #expect(rules.evaluated(to: place, isFull: false, of: 7, knowing: nil) == nil)
    }

    @Test func `content is known up to the cursor, unless some expired or did not fit`() {
        #expect(evaluated(9) == [20, 2, 10], "never back")
        #expect(evaluated(25, lastExpired: 10) == [25, 2, 25])
        #expect(evaluated(25, lastExpired: 11) == [25, 2, 10])
        #expect(evaluated(9, isFull: true) == [20, 2, 9])
        #expect(evaluated(25, isFull: true) == [25, 2, 10])
        #expect(evaluated(9, isFull: true, lastExpired: 11) == [20, 2, 9])
    }
}
