/// The operations of a store that a conformance suite needs in addition to ``ContentStore``.
public protocol ContentStoreHarness: Sendable {
    associatedtype Store: ContentStore

    /// Makes a new store in manual mode, without edits. The server has the objects `parent` and, below it, `child`; the store has
    /// both.
    func makeStore() async throws -> Store
    /// Opens the content of a store again, as the next process does. The former store is not used any more.
    func reopen(_ store: Store) async throws -> Store
    /// Changes an object as the user does, without a commit.
    func edit(_ object: String, in store: Store) async throws
    /// Returns the objects with uncommitted changes.
    func edits(in store: Store) async throws -> Set<String>
    /// Returns the objects in the store, also those that are marked as removed.
    func objects(in store: Store) async throws -> Set<String>
    /// Returns the objects that are marked as removed.
    func removed(in store: Store) async throws -> Set<String>
    /// Returns a number that differs after each replacement of the definitions.
    func definitions(in store: Store) async throws -> Int
    /// Sets the server's response to commits from now on: committed, refused or unreachable.
    func setCommits(_ outcome: CommitOutcome, of store: Store) async throws
}

/// Checks whether a ``ContentStore`` meets the requirements of the library: edits are kept, the names of effects are stored with
/// the effects, and definitions are replaced completely or not at all. Call it in the tests of an app.
///
/// ```swift
/// @Test func `our content keeps its promises`() async throws {
///     #expect(await ContentStoreConformance(OurHarness()).violations() == [])
/// }
/// ```
public struct ContentStoreConformance<Harness: ContentStoreHarness>: Sendable {
    private typealias Store = Harness.Store

    private let harness: Harness

    /// Makes a suite.
    public init(_ harness: Harness) { self.harness = harness }

    /// Runs all checks, each with a new store. Returns the violations; an empty array if the store passes.
    public func violations() async -> [String] {
        var violations: [String] = []
        let trials: [(String, (Store, inout [String]) async throws -> Void)] = [
            ("effects", effects), ("edits survive", editsSurvive), ("removal", removal), ("revision", revision),
            ("definitions", definitions), ("modes", modes), ("commits", commits), ("preparing", preparing),
        ]
        for (name, trial) in trials {
            var found: [String] = []
            do {
                try await trial(try await harness.makeStore(), &found)
            } catch {
                found.append("threw \(error)")
            }
            violations += found.map { "\(name): \($0)" }
        }
        return violations
    }

    private func effect(_ name: String) -> UpdateEffect { UpdateEffect(name: "conformance/1/\(name)") }

    private static var changes: [PushUpdate.Content] {
        [
            .refresh(object: "child", parents: 1, children: 0), .refresh(object: "parent", parents: 0, children: 1), .roots,
            .infrastructures, .resynchronise,
        ]
    }

    private func effects(_ store: Store, _ violations: inout [String]) async throws {
        let (one, other) = (effect("one"), effect("other"))
        if try await store.hasApplied(one) { violations.append("an effect counts as made before it was") }
        try await store.apply(.roots, as: one)
        if try await !store.hasApplied(one) { violations.append("an effect is not known when it was made") }
        if try await store.hasApplied(other) { violations.append("another effect counts as made") }
        let next = try await harness.reopen(store)
        if try await !next.hasApplied(one) { violations.append("an effect is not known to the next process") }
        await next.forget([one])
        if try await next.hasApplied(other) { violations.append("another effect counts as made, when one was forgotten") }
    }

    private func editsSurvive(_ first: Store, _ violations: inout [String]) async throws {
        for mode in [SyncMode.automatic, .manual, .offline] {
            for (number, change) in Self.changes.enumerated() {
                let store = try await harness.makeStore()
                try await store.setMode(mode)
                try await harness.edit("child", in: store)
                try await store.apply(change, as: effect("\(mode)\(number)"))
                if try await harness.edits(in: store) != ["child"] {
                    violations.append("an edit was lost to \(change) in mode \(mode)")
                }
                if await store.commit() != .committed { violations.append("an edit is not committable after \(change)") }
            }
        }
    }

    private func removal(_ store: Store, _ violations: inout [String]) async throws {
        try await store.apply(.remove(object: "child"), as: effect("clean"))
        if try await harness.objects(in: store).contains("child") { violations.append("a removed object is still there") }
        let other = try await harness.makeStore()
        try await harness.edit("child", in: other)
        try await other.apply(.remove(object: "child"), as: effect("dirty"))
        if try await !harness.objects(in: other).contains("child") { violations.append("an object with edits was removed") }
        if try await harness.removed(in: other) != ["child"] {
            violations.append("an object with edits is not marked as removed")
        }
        if try await harness.edits(in: other) != ["child"] { violations.append("an edit was lost to a removal") }
        if await other.commit() != .committed { violations.append("an edit is not committable after a removal") }
        try await other.apply(.remove(object: "never there"), as: effect("none"))
    }

    private func revision(_ store: Store, _ violations: inout [String]) async throws {
        let clean = try await store.uncommittedChanges()
        if !clean.isEmpty { violations.append("there are changes before the first edit") }
        if try await store.uncommittedChanges() != clean { violations.append("the revision changes by itself") }
        try await harness.edit("child", in: store)
        let one = try await store.uncommittedChanges()
        if one.isEmpty { violations.append("an edit is no change") }
        if one.revision == clean.revision { violations.append("the revision stays the same with an edit") }
        try await harness.edit("child", in: store)
        let two = try await store.uncommittedChanges()
        if two.revision == one.revision { violations.append("the revision stays the same with a second edit of one object") }
        let next = try await harness.reopen(store)
        if try await next.uncommittedChanges() != two { violations.append("the next process finds other changes") }
        _ = await next.commit()
        let committed = try await next.uncommittedChanges()
        if !committed.isEmpty { violations.append("there are changes after the commit") }
        if committed.revision == two.revision { violations.append("the revision stays the same with a commit") }
    }

    private func definitions(_ store: Store, _ violations: inout [String]) async throws {
        let before = try await harness.definitions(in: store)
        let revision = try await store.uncommittedChanges().revision
        try await harness.edit("child", in: store)
        let late = effect("late")
        if try await store.replaceDefinitions(unlessEditedSince: revision, as: late) != .dirtied {
            violations.append("definitions are replaced in spite of an edit")
        }
        if try await harness.definitions(in: store) != before {
            violations.append("what was dirtied was replaced all the same")
        }
        if try await store.hasApplied(late) { violations.append("what was dirtied counts as made") }
        if try await harness.edits(in: store) != ["child"] { violations.append("what was dirtied lost the edit") }
        _ = await store.commit()
        let present = try await store.uncommittedChanges().revision
        let good = effect("good")
        if try await store.replaceDefinitions(unlessEditedSince: present, as: good) != .replaced {
            violations.append("definitions are not replaced")
        }
        if try await harness.definitions(in: store) == before { violations.append("definitions stay as they were") }
        let next = try await harness.reopen(store)
        if try await !next.hasApplied(good) { violations.append("a replacement is not known to the next process") }
        if try await harness.definitions(in: next) == before {
            violations.append("the next process finds the definitions of before")
        }
    }

    private func modes(_ store: Store, _ violations: inout [String]) async throws {
        var store = store
        for mode in [SyncMode.offline, .automatic, .manual] {
            try await store.setMode(mode)
            if try await store.mode() != mode { violations.append("the mode is not \(mode) when it was set") }
            store = try await harness.reopen(store)
            if try await store.mode() != mode { violations.append("the next process finds another mode than \(mode)") }
        }
    }

    private func commits(_ store: Store, _ violations: inout [String]) async throws {
        try await harness.edit("child", in: store)
        for outcome in [CommitOutcome.refused("no"), .unreachable] {
            try await harness.setCommits(outcome, of: store)
            switch (await store.commit(), outcome) {
            case (.refused, .refused), (.unreachable, .unreachable): break
            case (let answer, _): violations.append("a commit that is \(outcome) answers \(answer)")
            }
            if try await harness.edits(in: store) != ["child"] {
                violations.append("a commit that is \(outcome) lost the edit")
            }
        }
        try await harness.setCommits(.committed, of: store)
        if await store.commit() != .committed { violations.append("a commit is not committed") }
        if try await !harness.edits(in: store).isEmpty { violations.append("an edit is still there when it was committed") }
        if await store.commit() != .committed { violations.append("a commit of nothing is not committed") }
    }

    private func preparing(_ store: Store, _ violations: inout [String]) async throws {
        try await store.setMode(.preparing)
        try await store.cancelPreparing()
        if try await store.mode() == .preparing { violations.append("a preparation goes on when it was cancelled") }
    }
}
