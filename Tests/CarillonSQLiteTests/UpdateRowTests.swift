import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The rows of bindings and completions, and the statements that change them.
@Suite(.timeLimit(.minutes(5)))
struct UpdateRowTests {
    private let start = StoreFixture.start

    private func bind(_ profile: String, _ fixture: StoreFixture, at now: Timestamp? = nil) async throws -> UpdateBinding {
        try #require(try await fixture.store.binding(of: fixture.device.serial, profile: profile, at: now ?? start))
    }

    @Test func `a user's change and another profile end a binding in different ways`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        var binding = try await bind("one", fixture)
        binding.parametersRevision = "r"
        binding.locatedAt = start
        binding.kinds = ["popup"]
        _ = try await store.change(binding, hasOtherKinds: false, at: start)
        func rows() async throws -> [[Int64?]] {
            try await store.read { db in
                let select = """
                    SELECT serial, revision, ended_at, located_at, held_to, is_left_over, parameters_revision IS NULL FROM binding
                    ORDER BY serial
                    """
                return try Row.fetchAll(db, sql: select).map { row in (0..<7).map { row[$0] as Int64? } }
            }
        }
        let place = AudienceCursor(UpdateSerial(9), rules: 1)
        _ = try await store.evaluated(
            binding.serial, revision: 2, to: place, isFull: false, adding: [], at: start)
        let now = start.milliseconds
        #expect(try await rows() == [[1, 2, nil, now, 9, 0, 0]])
        _ = try await bind("other", fixture, at: start.adding(seconds: 1))
        #expect(try await rows() == [[1, 3, now + 1000, nil, 0, 1, 1], [2, 1, nil, nil, 0, 0, 1]])
        let user = try #require(UserID("ada"))
        let signed = try await store.changeRegistration(of: fixture.device.serial, at: start) { current in
            .reports(current.profile, confirms: false, user: .signedIn(user))
        }
        _ = try #require(signed).get()
        #expect(try await rows() == [[1, 3, now + 1000, nil, 0, 1, 1], [2, 2, now, nil, 0, 0, 1]])
    }

    private func publish(_ number: UInt64, orderKey: String? = nil, _ fixture: StoreFixture) async throws -> Update {
        let definition = Update.Definition(
            kind: .popup, payload: [1], audience: nil, mode: .once, ttlSeconds: 1000, orderKey: orderKey, supersedes: nil)
        let request = UpdateRequest(
            proposed: UpdateID(Bytes16(high: 4, low: number)), app: fixture.device.app, key: KeyID(7),
            definition: definition, body: [2], isIndexed: true, idempotency: nil, limits: UpdateLimits())
        guard case .made(let update, _, _) = try await fixture.store.publishUpdate(request, at: start) else {
            throw StoreFixture.Missing()
        }
        return update
    }

    @Test func `the bodies of updates that are forgotten, or whose app is deleted, are removed`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        func bodies() async throws -> Int {
            _ = try await store.sweep(at: start, limit: 100)
            return try await store.rowCount(of: "shared_content")
        }
        let forgotten = try await publish(1, fixture)
        let ended = try await publish(2, fixture)
        _ = try await publish(3, fixture)
        let resync = ResyncRequest(proposed: UpdateID(Bytes16(high: 4, low: 4)), body: [3])
        _ = try await store.resync(try await bind("one", fixture).serial, resync, at: start)
        #expect(try await bodies() == 4)
        #expect(try await store.withdrawUpdate(forgotten, by: KeyID(7), at: start))
        #expect(try await store.unfinishedOfEnded(limit: 9).isEmpty)
        #expect(try await bodies() == 4)
        let all = UpdateLimits(ended: 0)
        while try await !store.forgetUpdates(all, by: nil, limit: 9) {}
        #expect(try await bodies() == 3)
        #expect(try await store.withdrawUpdate(ended, by: KeyID(7), at: start))
        _ = try await store.deleteApp(fixture.device.appID, at: start)
        while try await !store.continueDeletions(at: start, limit: 1).isDone {}
        #expect(try await store.rowCount(of: "audience_update") == 0)
        #expect(try await bodies() == 0)
    }

    // MARK: Statements

    private static let tables = ["binding", "completion", "audience_update"]

    /// The statements on these tables, reads included. A statement counts once.
    private func statements(
        of store: SQLiteStore, on tables: [String] = tables, in work: () async throws -> Void
    ) async throws -> Int {
        let seen = Set(try await store.tracing(work).statements)
        return seen.count { sql in tables.contains { sql.contains($0) } }
    }

    @Test func `calls run as many statements as the documentation lists`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        func run(_ work: () async throws -> Void) async throws -> Int { try await statements(of: store, in: work) }
        func begun(_ profile: String) async throws -> Int { try await run { _ = try await bind(profile, fixture) } }
        #expect(try await begun("one") == 3)
        #expect(try await begun("one") == 1)
        #expect(try await begun("other") == 4)
        #expect(try await begun("one") == 7)
        for number in 2..<UpdateBinding.mostOfDevice { _ = try await bind("p\(number)", fixture) }
        #expect(try await begun("more") == 6)
        let binding = try await bind("more", fixture)
        let held = try await run {
            let place = AudienceCursor(UpdateSerial(1), rules: 1)
            _ = try await store.evaluated(
                binding.serial, revision: binding.revision, to: place, isFull: false, adding: [], at: start)
        }
        #expect(held == 2)
        let found = try await run { _ = try await store.presentBinding(of: fixture.device.serial) }
        #expect(found == 1)
        let standing = try await run {
            _ = try await store.bindingState(of: binding.serial, from: UpdateSerial(1), under: 1)
        }
        #expect(standing == 1)
        let changed = try await run { _ = try await store.change(binding, hasOtherKinds: false, at: start) }
        #expect(changed == 1)
    }

    @Test func `completions are read and written by as many statements as the documentation lists`() async throws {
        let fixture = try await StoreFixture(.memory)
        let (store, app) = (fixture.sqlite, fixture.device.app)
        let binding = try await bind("one", fixture)
        func run(_ work: () async throws -> Void) async throws -> Int {
            try await statements(of: store, on: ["completion"], in: work)
        }
        let first = try await publish(1, orderKey: "k", fixture)
        let second = try await publish(2, orderKey: "k", fixture)
        let key = CompletionKey(update: first.serial, binding: binding.serial, entry: 1)
        let offer = UpdateOffer(key: key, revision: binding.revision, attempt: 1, orderKey: "k", at: start)
        let envelope = Envelope(
            id: fixture.envelope(1).id, device: binding.device, app: app, origin: first.origin,
            kind: .update(.init(body: first.body, shared: first.content, entry: 1, attempt: 1)), acceptedAt: start,
            expiresAt: first.expiresAt)
        let offered = try await run {
            let rules = AppendRules(topic: key.topic, effects: [.updateOffered(offer)])
            let results = try await store.commit([.append(envelope, rules)])
            #expect(results == [.stored(replaced: nil)])
        }
        #expect(offered == 2)
        let next = Completion(
            key: CompletionKey(update: second.serial, binding: binding.serial, entry: 1), machine: CompletionMachine(),
            changedAt: start, orderKey: "k")
        let held = try await run {
            let place = AudienceCursor(second.serial, rules: 1)
            _ = try await store.evaluated(
                binding.serial, revision: binding.revision, to: place, isFull: false, adding: [next], at: start)
        }
        #expect(held == 2)
        let finished = try await run {
            let finalOutcome = FinalOutcome(.acknowledged, at: start)
            _ = try await store.commit([.finish(envelope.id, device: binding.device, finalOutcome)])
        }
        #expect(finished == 2)
        let reported = try await run {
            let result = ReportedResult(update: first.id, entry: 1, attempt: nil, result: .done)
            _ = try await store.report([result], receivedTo: nil, of: binding.serial, at: start)
        }
        // The second one is due, and is requested.
        #expect(reported == 4)
        let again = UpdateOffer(
            key: next.key, revision: binding.revision, isAgain: true, attempt: 1, orderKey: "k", at: start)
        let copy = Envelope(
            id: fixture.envelope(2).id, device: binding.device, app: app, origin: second.origin,
            kind: .update(.init(body: second.body, shared: second.content, entry: 1, attempt: 1)), acceptedAt: start,
            expiresAt: second.expiresAt)
        let rules = AppendRules(topic: next.key.topic, effects: [.updateOffered(again)])
        #expect(try await store.commit([.append(copy, rules)]) == [.stored(replaced: nil)])
        let parked = try await run {
            let failure = UpdateResult.failed(isPermanent: true, reason: nil)
            let result = ReportedResult(update: second.id, entry: 1, attempt: nil, result: failure)
            let report = try await store.report([result], receivedTo: nil, of: binding.serial, at: start)
            #expect(report.answers == [.taken(copy.id)])
        }
        // Coalesced content is read as well.
        #expect(parked == 5)
    }
}
