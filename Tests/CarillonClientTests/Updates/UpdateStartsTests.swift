import CarillonBasics
import CarillonWire
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Updates with which the process ends.
@Suite(.timeLimit(.minutes(5)))
struct UpdateStartsTests {
    private typealias Fixture = ProcessingFixture

    private static let kind = "com.example.kind"
    private static let refresh = #"{"action":"refresh","object":"pump"}"#

    /// The names of updates, in the order in which their handlers began and ended.
    private final class Record: Sendable {
        private let names = Mutex<[String]>([])

        func add(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
    }

    private static func starts(_ fixture: Fixture, of update: String = "a") async throws -> Int? {
        try await fixture.inbox.store.inStep { db in
            try Int.fetchOne(db, sql: "SELECT starts FROM update_inbox WHERE id = ?", arguments: [update])
        }
    }

    /// Ends the inbox as after processes that ended while they processed the next update.
    private static func crash(_ fixture: Fixture, times: Int) async throws {
        for _ in 0..<times {
            let update = try #require(try await fixture.inbox.next())
            try await fixture.inbox.setAway(update)
            try await fixture.inbox.started(update)
            try await fixture.inbox.setOwner(Fixture.owner)
        }
    }

    @Test func `a start is stored before the handler runs, and gone when it threw`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        let record = Record()
        let worker = fixture.worker(custom: [
            Self.kind: { _ in
                let starts = try await Self.starts(fixture)
                record.add("\(starts ?? -1)")
                throw ContentFault.retryable("later")
            }
        ])
        try await fixture.run(worker) { try await !fixture.results().isEmpty }
        #expect(record.all == ["1"])
        #expect(try await fixture.results() == ["a failed (later)"])
        #expect(try await Self.starts(fixture) == 0)
    }

    @Test(arguments: [9, 10]) func `after ten starts that ended with the process a handler is not called`(times: Int)
        async throws
    {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind), Fixture.frame("b", "content", Self.refresh))
        try await Self.crash(fixture, times: times)
        let record = Record()
        let worker = fixture.worker(custom: [Self.kind: { update in record.add(update.id) }])
        try await fixture.run(worker) { try await fixture.results().count == 2 }
        #expect(fixture.content.content.applied.count == 1, "the others are processed")
        guard times == 10 else {
            #expect(record.all == ["a"] && fixture.presenter.seen.crashed.isEmpty)
            return #expect(Set(try await fixture.results()) == ["a done", "b done"])
        }
        #expect(record.all.isEmpty)
        #expect(fixture.presenter.seen.crashed == ["a"])
        #expect(Set(try await fixture.results()) == ["a failed (crashed)", "b done"])
        let word = try await fixture.inbox.report(results: 9)
        #expect(word.results.contains { $0.json["permanent"] == .bool(true) })
        // An operator requeues it.
        try await fixture.receive(Fixture.frame("a", Self.kind, attempt: 2))
        let again = fixture.worker(custom: [Self.kind: { update in record.add(update.id) }])
        try await fixture.run(again) { try await fixture.results().contains("a done") }
        #expect(record.all == ["a"])
    }

    @Test func `an update that the server delivers again after a day continues its count`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        try await Self.crash(fixture, times: 4)
        try await fixture.receive(Fixture.frame("a", Self.kind, attempt: 2))
        #expect(try await fixture.inbox.next()?.starts == 4)
    }

    @Test func `a handler that is cancelled does not count, also before it ends`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        let (record, isReleased) = (Record(), Record())
        let worker = fixture.worker(custom: [
            Self.kind: { update in
                record.add(update.id)
                fixture.content.state.withLock { $0.die }?()
                // It is not informed that it is cancelled.
                while isReleased.all.isEmpty { await Task.yield() }
                throw CancellationError()
            }
        ])
        let run = Task { try await fixture.run(worker) { false } }
        try await eventually { !record.all.isEmpty }
        try await eventually { try await Self.starts(fixture) == 0 }
        isReleased.add("now")
        try await run.value
        #expect(try await Self.starts(fixture) == 0)
        #expect(try await fixture.results().isEmpty)
    }

    @Test func `a handler that returns after it was cancelled has processed the update for its owner`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        let record = Record()
        let worker = fixture.worker(custom: [
            Self.kind: { update in
                record.add(update.id)
                while !Task.isCancelled {
                    fixture.content.state.withLock { $0.die }?()
                    await Task.yield()
                }
            }
        ])
        try await fixture.run(worker) { false }
        #expect(try await fixture.results() == ["a done"])
        // The user signs out and in, and the server delivers the update again.
        try await fixture.inbox.setOwner(nil)
        try await fixture.inbox.setOwner(Fixture.owner)
        try await fixture.receive(Fixture.frame("a", Self.kind, attempt: 2))
        #expect(try await fixture.inbox.isAllProcessed())
        #expect(record.all == ["a"])
    }

    @Test func `nothing is started while the start cannot be stored`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        let update = try #require(try await fixture.inbox.next())
        try await fixture.inbox.store.inStep { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER full BEFORE UPDATE OF starts ON update_inbox
                    BEGIN SELECT raise(FAIL, 'database or disk is full'); END
                    """)
        }
        let worker = fixture.worker()
        let begin = Task { await worker.begin(update) }
        try await eventually { fixture.presenter.seen.failures.contains { $0.kind == .storage } }
        begin.cancel()
        let begins = await begin.value
        #expect(!begins)
    }

    @Test func `the app's content and dialogs count while they are called, and dialogs that wait do not`() async throws {
        let fixture = try await Fixture(ContentFixture(.manual, edits: 1))
        let record = Record()
        fixture.content.state.withLock {
            $0.beforeApply = { record.add("content \((try? await Self.starts(fixture, of: "a")) ?? -1)") }
            $0.beforeDownload = { record.add("download \((try? await Self.starts(fixture, of: "b")) ?? -1)") }
        }
        fixture.presenter.state.withLock {
            $0.consent = nil
            $0.beforeShow = { record.add("show \((try? await Self.starts(fixture, of: "b")) ?? -1)") }
            $0.beforeQuestion = { record.add("question \((try? await Self.starts(fixture, of: "c")) ?? -1)") }
        }
        try await fixture.receive(
            Fixture.frame("a", "content", Self.refresh),
            Fixture.frame("b", "popup", #"{"style":"failure","title":"t","object":"pump"}"#),
            Fixture.frame("c", "status", #"{"status":"maintenance"}"#))
        try await fixture.run(fixture.worker()) {
            guard !fixture.presenter.seen.questions.isEmpty, fixture.presenter.seen.shown != nil else { return false }
            fixture.content.state.withLock { $0.downloads[.object("pump")] = .success(()) }
            guard fixture.presenter.seen.shown?.button == .detail else { return false }
            return try await Self.starts(fixture, of: "b") == 0
        }
        #expect(Set(record.all).isSuperset(of: ["content 1", "download 1", "question 1"]), "\(record.all)")
        let shows = record.all.filter { $0.hasPrefix("show") }
        #expect(shows.count > 1 && shows.allSatisfy { $0 == "show 1" }, "\(shows)")
        #expect(try await Self.starts(fixture, of: "c") == 0, "it was cancelled")
    }

    @Test func `a dialog that changes while its attachment is downloaded does not end the start of the download`()
        async throws
    {
        let fixture = try await Fixture()
        try await fixture.receive(
            Fixture.frame("a", "popup", #"{"style":"failure","title":"t","object":"pump"}"#))
        let (rounds, record) = (Record(), Record())
        try await fixture.run(fixture.worker()) {
            guard fixture.presenter.seen.shown?.button == .downloading(0.5) else { return false }
            // So long that the start would have been taken back.
            rounds.add("round")
            guard rounds.all.count > 30 else { return false }
            let starts = try await Self.starts(fixture)
            record.add("\(starts ?? -1)")
            return true
        }
        #expect(record.all == ["1"])
    }

    @Test func `updates that were under way when the process ended are started one after the other`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind), Fixture.frame("b", Self.kind))
        for _ in 0..<2 {
            let update = try #require(try await fixture.inbox.next())
            try await fixture.inbox.started(update)
            try await fixture.inbox.setAway(update)
        }
        try await fixture.inbox.setOwner(Fixture.owner)
        let (record, isReleased) = (Record(), Record())
        let worker = fixture.worker(custom: [
            Self.kind: { update in
                record.add("\(update.id) begins")
                while isReleased.all.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
                record.add("\(update.id) ends")
            }
        ])
        let run = Task { try await fixture.run(worker) { try await fixture.results().count == 2 } }
        try await eventually { !record.all.isEmpty }
        // So long that the other one would have begun.
        try await Task.sleep(for: .milliseconds(200))
        isReleased.add("now")
        try await run.value
        let order = record.all.map { String($0.prefix(1)) }
        #expect(order == ["a", "a", "b", "b"] || order == ["b", "b", "a", "a"], "\(record.all)")
    }

    @Test(arguments: [9, 10]) func `after ten starts that ended with the process a maintenance is forgotten`(times: Int)
        async throws
    {
        let fixture = try await Fixture()
        try await fixture.inbox.setMaintenance(UpdateInbox.Maintenance(beginsAt: 0))
        try await fixture.inbox.setMaintenanceStarts(times)
        let record = Record()
        fixture.content.state.withLock {
            $0.beforeMode = { record.add("\((try? await fixture.inbox.maintenance()?.starts) ?? -1)") }
        }
        let next = try await fixture.worker().advanceMaintenance()
        #expect(next == nil)
        let maintenance = try await fixture.inbox.maintenance()
        guard times == 10 else {
            #expect(record.all == ["10"])
            #expect(maintenance?.starts == 9 && fixture.content.content.mode == .offline)
            return #expect(fixture.presenter.seen.failures.isEmpty)
        }
        #expect(record.all.isEmpty && maintenance == nil && fixture.content.content.mode == .automatic)
        #expect(fixture.presenter.seen.failures.map(\.kind) == [.processing])
    }

    @Test func `a presenter without support for crashes receives a failure`() async throws {
        let presenter = Plain()
        await presenter.crashed(
            PushUpdate(id: "a", kind: .definitions, publishedAt: Date(timeIntervalSince1970: 0)))
        let failures = presenter.failures.withLock { $0 }
        #expect(failures.map(\.kind) == [.processing] && failures[0].message.contains("update a"))
    }

    private final class Plain: UpdatePresenter {
        let failures = Mutex<[UpdateFailure]>([])

        func received(_ counts: [String: Int]) async {}
        func failed(_ failure: UpdateFailure) async { failures.withLock { $0.append(failure) } }
        func conflict(_ update: PushUpdate) async {}
        func mayCommit(before update: PushUpdate, deadline: Date) async -> CommitConsent { .unanswered }
        func notify(_ popup: PushUpdate.Popup) async {}
        func show(_ dialog: PopupDialog) async {}
        func dismiss(_ dialog: PopupDialog.ID) async {}
        func open(_ attachment: PushUpdate.Attachment) async {}
    }
}
