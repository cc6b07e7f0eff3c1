import CarillonBasics
import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Updates that are withdrawn before the app's code runs for them, or offered again while it runs.
@Suite(.timeLimit(.minutes(5)))
struct WithdrawnUpdateTests {
    private typealias Fixture = ProcessingFixture

    private static let kind = "com.example.kind"
    private static let maintenance = #"{"status":"maintenance"}"#

    private final class Record: Sendable {
        private let names = Mutex<[String]>([])

        func add(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
    }

    /// Ends the inbox as after processes that ended while they processed the next update.
    private static func crash(_ fixture: Fixture, times: Int = 1) async throws {
        for _ in 0..<times {
            let update = try #require(try await fixture.inbox.next())
            let isStored = try await fixture.inbox.started(update)
            #expect(isStored)
        }
    }

    @Test func `a start of an update that was withdrawn is not stored`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        let update = try #require(try await fixture.inbox.next())
        try await fixture.receive(Fixture.frame("a", Self.kind, attempt: 0))
        #expect(try await fixture.inbox.started(update) == false)
        let begins = await fixture.worker().begin(update)
        #expect(!begins)
    }

    @Test(arguments: [false, true])
    func `code that waits for its turn does not run for an update that is withdrawn`(isGivenAgain: Bool) async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        try await Self.crash(fixture)
        let update = try #require(try await fixture.inbox.next())
        #expect(update.starts == 1)
        let worker = fixture.worker()
        let work = await worker.beginSideWork(of: update)
        #expect(worker.suspects.begin(.message(update.number), at: .now))
        let waiting = Task { await worker.begin(update, work) }
        try await eventually { await worker.running[update.key] != nil }
        let arrival = try await fixture.receive(Fixture.frame("a", Self.kind, attempt: 0))
        if isGivenAgain {
            await worker.arrived(arrival)
            // The row has the number of the row before.
            try await fixture.receive(Fixture.frame("a", Self.kind, attempt: 2))
        }
        worker.suspects.end(.message(update.number))
        let begins = await waiting.value
        #expect(!begins)
        #expect(try await fixture.inbox.next()?.starts == (isGivenAgain ? 0 : nil))
        #expect(worker.suspects.begin(.message(update.number), at: .now), "the turn is free")
    }

    @Test(arguments: [
        ("status", #"{"status":"maintenance"}"#), ("content", #"{"action":"refresh","object":"pump"}"#),
    ])
    func `an update that is withdrawn during a call of the content changes nothing`(_ kind: String, _ payload: String)
        async throws
    {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", kind, payload))
        fixture.content.state.withLock {
            $0.beforeChanges = {
                do {
                    try await fixture.receive(Fixture.frame("a", kind, attempt: 0))
                } catch {
                    Issue.record(error)
                }
            }
        }
        try await fixture.process()
        #expect(fixture.content.content.mode == .automatic && fixture.content.content.applied.isEmpty)
        #expect(try await fixture.inbox.maintenance() == nil)
        #expect(try await fixture.results().isEmpty)
    }

    @Test func `a maintenance that is withdrawn at the last moment does not begin`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "status", Self.maintenance))
        let update = try #require(try await fixture.inbox.next())
        let worker = fixture.worker()
        try await fixture.receive(Fixture.frame("a", "status", attempt: 0))
        try await worker.enterMaintenance(nil, nil, for: update)
        #expect(fixture.content.content.mode == .automatic)
        #expect(try await fixture.inbox.maintenance() == nil)
    }

    @Test func `the answer to a replaced prompt changes nothing`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "status", Self.maintenance))
        let update = try #require(try await fixture.inbox.next())
        let worker = fixture.worker()
        let former = await worker.beginSideWork(of: update)
        let present = await worker.beginSideWork(of: update)
        try await fixture.inbox.setAway(update)
        await worker.answered(update, former, .given)
        let isThere = await worker.sideWork[update.key] === present
        #expect(isThere)
        #expect(try await fixture.inbox.isAllProcessed(), "the update waits for its own answer")
        await worker.answered(update, present, .given)
        #expect(try await fixture.inbox.isAllProcessed() == false)
    }

    // MARK: Offered again

    @Test(arguments: [0, 9])
    func `an update that is offered again while its handler runs is handled once`(crashes: Int) async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        try await Self.crash(fixture, times: crashes)
        let (record, isReleased) = (Record(), Record())
        let worker = fixture.worker(custom: [
            Self.kind: { update in
                record.add("\(update.attempt)")
                while isReleased.all.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
                throw ContentFault.retryable("later")
            }
        ])
        let run = Task { try await fixture.run(worker) { try await !fixture.results().isEmpty } }
        try await eventually { record.all == ["1"] }
        await worker.arrived(try await fixture.receive(Fixture.frame("a", Self.kind, attempt: 2)))
        try await eventually { try await fixture.inbox.isAllProcessed() }
        isReleased.add("now")
        try await run.value
        #expect(record.all == ["1"])
        #expect(fixture.presenter.seen.crashed.isEmpty)
        #expect(try await fixture.results() == ["a failed (later)"])
        let word = try await fixture.inbox.report(results: 9)
        #expect(word.results.first?.json["attempt"] == .integer(2), "the server waits for the result of the newest attempt")
    }

    @Test func `the starts of an update that is offered again while its handler runs stay the same`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", Self.kind))
        try await Self.crash(fixture, times: 3)
        let record = Record()
        let worker = fixture.worker(custom: [
            Self.kind: { _ in
                record.add("begins")
                try await Task.sleep(for: .seconds(60))
            }
        ])
        let run = Task { try await fixture.run(worker) { false } }
        try await eventually { record.all == ["begins"] }
        await worker.arrived(try await fixture.receive(Fixture.frame("a", Self.kind, attempt: 2)))
        try await eventually { try await fixture.inbox.isAllProcessed() }
        fixture.content.state.withLock { $0.die }?()
        try await run.value
        try await fixture.inbox.setOwner(Fixture.owner)
        #expect(try await fixture.inbox.next()?.starts == 3)
    }

    @Test func `the user is asked once about an update that is offered again`() async throws {
        let fixture = try await Fixture(ContentFixture(.manual, edits: 2))
        fixture.presenter.state.withLock { $0.consent = nil }
        try await fixture.receive(Fixture.frame("a", "status", Self.maintenance))
        let worker = fixture.worker()
        let run = Task { try await fixture.run(worker) { try await !fixture.results().isEmpty } }
        try await eventually { fixture.presenter.seen.questions == ["a"] }
        await worker.arrived(try await fixture.receive(Fixture.frame("a", "status", Self.maintenance, attempt: 2)))
        try await eventually { try await fixture.inbox.isAllProcessed() }
        fixture.presenter.state.withLock { $0.consent = .declined }
        try await run.value
        #expect(fixture.presenter.seen.questions == ["a"])
        #expect(try await fixture.results() == ["a done (commit declined)"])
    }
}
