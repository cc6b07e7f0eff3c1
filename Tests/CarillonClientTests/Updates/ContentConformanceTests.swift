import ClientContent
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The example meets the requirements of the suite, and the suite notices violations.
@Suite(.timeLimit(.minutes(5)))
struct ContentConformanceTests {
    final class Source: ContentSource {
        let commits = Mutex(CommitOutcome.committed)

        func objects(_ change: PushUpdate.Content) async throws -> [String: String] {
            ["parent": "of the server", "child": "of the server"]
        }

        func definitions() async throws -> String { "definitions" }
        func commit(_ edits: [String: String]) async -> CommitOutcome { commits.withLock { $0 } }
        func file(of attachment: PushUpdate.Attachment) async throws -> Data { Data() }
    }

    /// With the faults that a store can have.
    enum Flaw: String, CaseIterable {
        case losesEdits, losesEffects, ignoresRevision, removesEdited, forgetsMode, commitsNothing, keepsPreparing
        case sameRevision
    }

    final class Store: ContentStore {
        let base: SQLiteContent
        let path: String
        let source: Source
        let flaw: Flaw?

        init(path: String, source: Source, flaw: Flaw?) throws {
            base = try SQLiteContent(path: path, source: source)
            (self.path, self.source, self.flaw) = (path, source, flaw)
        }

        func mode() async throws -> SyncMode { try await base.mode() }
        func setMode(_ mode: SyncMode) async throws { if flaw != .forgetsMode { try await base.setMode(mode) } }

        func uncommittedChanges() async throws -> UncommittedChanges {
            var changes = try await base.uncommittedChanges()
            if flaw == .sameRevision { changes.revision = 1 }
            return changes
        }

        func commit() async -> CommitOutcome { flaw == .commitsNothing ? .committed : await base.commit() }

        func hasApplied(_ effect: UpdateEffect) async throws -> Bool {
            flaw == .losesEffects ? false : try await base.hasApplied(effect)
        }

        func apply(_ content: PushUpdate.Content, as effect: UpdateEffect) async throws {
            let isRemoval = if case .remove = content { true } else { false }
            if flaw == .losesEdits && !isRemoval || flaw == .removesEdited && isRemoval { _ = await base.commit() }
            try await base.apply(content, as: effect)
        }

        func replaceDefinitions(
            unlessEditedSince revision: Int64, as effect: UpdateEffect
        ) async throws -> DefinitionsOutcome {
            let present = try await base.uncommittedChanges().revision
            let isBlind = flaw == .ignoresRevision || flaw == .sameRevision
            return try await base.replaceDefinitions(unlessEditedSince: isBlind ? present : revision, as: effect)
        }

        func cancelPreparing() async throws { if flaw != .keepsPreparing { try await base.cancelPreparing() } }
        func download(_ attachment: PushUpdate.Attachment, progress: @escaping @Sendable (Double) -> Void) async throws {}
        func forget(_ effects: [UpdateEffect]) async { await base.forget(effects) }
        func events() async -> AsyncStream<ContentEvent> { await base.events() }
    }

    struct Harness: ContentStoreHarness {
        let directory = TemporaryDirectory()
        var flaw: Flaw?

        func makeStore() async throws -> Store {
            let store = try Store(path: directory.path + "/\(UUID().uuidString).sqlite", source: Source(), flaw: flaw)
            try await store.base.apply(.resynchronise, as: UpdateEffect(name: "first"))
            return store
        }

        func reopen(_ store: Store) async throws -> Store {
            try Store(path: store.path, source: store.source, flaw: flaw)
        }

        func edit(_ object: String, in store: Store) async throws {
            try await store.base.edit(object, to: "of the user \(UUID())")
        }

        func edits(in store: Store) async throws -> Set<String> { Set(try await store.base.edits().keys) }
        func objects(in store: Store) async throws -> Set<String> { Set(try await store.base.objects().keys) }
        func removed(in store: Store) async throws -> Set<String> { try await store.base.removedObjects() }
        func definitions(in store: Store) async throws -> Int { try await store.base.replacements() }
        func setCommits(_ outcome: CommitOutcome, of store: Store) async throws {
            store.source.commits.withLock { $0 = outcome }
        }
    }

    @Test func `the store of the example has no violations of the conformance test`() async {
        #expect(await ContentStoreConformance(Harness()).violations() == [])
    }

    @Test(arguments: Flaw.allCases)
    func `a store that does not is found out`(_ flaw: Flaw) async {
        #expect(await !ContentStoreConformance(Harness(flaw: flaw)).violations().isEmpty)
    }
}
