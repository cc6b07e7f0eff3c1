import CarillonBasics
import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The effects of updates on an app's content, with real storage.
@Suite(.timeLimit(.minutes(5)))
struct ProcessingTests {
    private typealias Fixture = ProcessingFixture

    private static let refresh = #"{"action":"refresh","object":"pump","children":1}"#
    private static let maintenance = #"{"status":"maintenance"}"#

    @Test func `content is applied, edits stay, and the effect may be forgotten`() async throws {
        let fixture = try await Fixture(ContentFixture(.offline, edits: 3))
        let arrival = try await fixture.receive(
            Fixture.frame("a", "content", Self.refresh), Fixture.frame("b", "content", #"{"action":"remove","object":"x"}"#))
        #expect(arrival.counts == ["content": 2])
        try await fixture.process()
        #expect(try await fixture.results() == ["a done", "b done"])
        #expect(
            fixture.content.content.applied == [.refresh(object: "pump", parents: 0, children: 1), .remove(object: "x")])
        #expect(fixture.content.content.edits == 3)
        #expect(fixture.content.state.withLock { $0.forgotten } == ["a/1/content", "b/1/content"])
    }

    @Test func `a repeated update is not processed again, and its result is reported again`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "content", Self.refresh))
        try await fixture.process()
        let word = try await fixture.inbox.report(results: 10)
        _ = try await fixture.inbox.received(
            PollAnswer(), to: nil, by: Fixture.owner, reported: word.results, parameters: nil)
        #expect(try await fixture.results().isEmpty)
        let arrival = try await fixture.receive(Fixture.frame("a", "content", Self.refresh, attempt: 2))
        #expect(arrival.counts.isEmpty)
        try await fixture.process()
        #expect(try await fixture.results() == ["a done"])
        #expect(fixture.content.content.applied.count == 1)
        // Another entry is another effect.
        try await fixture.receive(Fixture.frame("a", "content", Self.refresh, entry: 2))
        try await fixture.process()
        #expect(fixture.content.content.applied.count == 2)
    }

    @Test func `definitions wait until changes are committed, and the user is notified once`() async throws {
        let fixture = try await Fixture(ContentFixture(.manual, edits: 1))
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await fixture.process()
        #expect(try await fixture.results() == ["a deferred committed (uncommitted changes)"])
        let worker = fixture.worker()
        try await worker.happened(.modeChanged(.offline))
        try await fixture.process()
        #expect(try await fixture.results() == ["a deferred committed (uncommitted changes)"])
        // The server delivers it again after a day.
        try await fixture.receive(Fixture.frame("a", "definitions", attempt: 2))
        try await fixture.process()
        #expect(fixture.presenter.seen.conflicts == ["a"])
        fixture.content.state.withLock { $0.content.edits = 0 }
        try await worker.happened(.committed)
        try await fixture.process()
        #expect(try await fixture.results() == ["a done"])
        #expect(fixture.content.content.definitions == 2 && fixture.content.content.mode == .automatic)
        #expect(fixture.content.content.effects == ["a/1/definitions", "a/1/roots", "a/1/infrastructures"])
    }

    @Test func `definitions that wait for a commit go on when the mode becomes automatic, which commits`() async throws {
        let fixture = try await Fixture(ContentFixture(.manual, edits: 1))
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await fixture.process()
        #expect(try await fixture.results() == ["a deferred committed (uncommitted changes)"])
        fixture.content.state.withLock { $0.content.mode = .automatic }
        try await fixture.worker().happened(.modeChanged(.automatic))
        try await fixture.process()
        #expect(try await fixture.results() == ["a done"])
        #expect(fixture.content.content.commits == 1)
    }

    @Test func `a conflict can be a failure`() async throws {
        let fixture = try await Fixture(ContentFixture(.offline, edits: 1))
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await fixture.process(failsConflicts: true)
        #expect(try await fixture.results() == ["a failed (uncommitted changes)"])
        // It is delivered again, and until then nothing is tried.
        try await fixture.process(failsConflicts: true)
        #expect(fixture.presenter.seen.conflicts == ["a"])
        fixture.content.state.withLock { $0.content.edits = 0 }
        try await fixture.receive(Fixture.frame("a", "definitions", attempt: 2))
        try await fixture.process(failsConflicts: true)
        #expect(try await fixture.results() == ["a done"])
    }

    @Test func `an edit between the plan and the change is committed first`() async throws {
        let fixture = try await Fixture()
        fixture.content.state.withLock { $0.editsMeanwhile = 2 }
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await fixture.process()
        #expect(try await fixture.results() == ["a done"])
        #expect(fixture.content.content.commits == 2 && fixture.content.content.definitions == 2)
        // A user who edits continuously delays the update.
        fixture.content.state.withLock { $0.editsMeanwhile = .max }
        try await fixture.receive(Fixture.frame("b", "definitions"))
        try await fixture.process()
        #expect(try await fixture.results().last == "b deferred committed (edited meanwhile)")
        #expect(fixture.content.content.definitions == 2)
    }

    @Test func `a permanent refusal of the store is not retried, and other failures are`() async throws {
        let fixture = try await Fixture()
        fixture.content.state.withLock { $0.fault = ContentFault.permanent("no such object") }
        try await fixture.receive(Fixture.frame("a", "content", Self.refresh))
        try await fixture.process()
        fixture.content.state.withLock { $0.fault = ContentFault.retryable("busy") }
        let roots = #"{"action":"roots"}"#
        try await fixture.receive(Fixture.frame("b", "content", roots))
        try await fixture.process()
        fixture.content.state.withLock { $0.fault = nil }
        let word = try await fixture.inbox.report(results: 10)
        #expect(word.results.map(\.json["permanent"]) == [.bool(true), nil])
        #expect(try await fixture.results() == ["a failed (no such object)", "b failed (busy)"])
        #expect(fixture.presenter.seen.failures.map(\.kind) == [.processing, .processing])
        fixture.content.state.withLock { $0.fault = ContentFault.retryable("busy") }
        try await fixture.receive(Fixture.frame("b", "content", roots, attempt: 2))
        try await fixture.process()
        #expect(fixture.presenter.seen.failures.count == 2, "the same failure is reported once")
    }

    @Test func `a withdrawn update is not processed`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "content", Self.refresh))
        let arrival = try await fixture.receive(Fixture.frame("a", "content", Self.refresh, attempt: 0))
        #expect(arrival.retracted == [UpdateKey(update: "a", entry: 1)])
        try await fixture.process()
        #expect(fixture.content.content.applied.isEmpty)
        #expect(try await fixture.results().isEmpty)
    }

    @Test func `a result of an update that was withdrawn meanwhile is not reported`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "popup", #"{"style":"failure","title":"t"}"#))
        let update = try #require(try await fixture.inbox.next())
        try await fixture.receive(Fixture.frame("a", "popup", attempt: 0))
        try await fixture.receive(Fixture.frame("b", "definitions"))
        #expect(try await fixture.inbox.finished(update, .done()) == false)
        #expect(try await fixture.results().isEmpty)
        #expect(try await fixture.inbox.next()?.key.update == "b")
    }

    @Test func `later content replaces earlier content that was not processed`() async throws {
        let fixture = try await Fixture(ContentFixture(.preparing))
        try await fixture.receive(Fixture.frame("a", "content", Self.refresh))
        try await fixture.process()
        #expect(try await fixture.results() == ["a deferred mode (preparing)"])
        try await fixture.receive(
            Fixture.frame("b", "content", #"{"action":"refresh","object":"other"}"#),
            Fixture.frame("c", "content", #"{"action":"remove","object":"pump"}"#),
            Fixture.frame("d", "popup", #"{"style":"notification","title":"t"}"#))
        try await fixture.receive(Fixture.frame("e", "content", #"{"action":"resync"}"#, orderKey: "other"))
        try await fixture.process()
        #expect(fixture.presenter.seen.notified.count == 1, "a resynchronisation replaces content alone")
        #expect(
            try await fixture.results() == ["a deferred mode (preparing)", "d done", "e deferred mode (preparing)"],
            "nothing is processed before its replacement")
        fixture.content.state.withLock { $0.content.mode = .manual }
        try await fixture.worker().happened(.modeChanged(.manual))
        try await fixture.process()
        #expect(fixture.content.content.applied == [.resynchronise])
        #expect(
            Set(try await fixture.results()) == [
                "a done (absorbed)", "b done (absorbed)", "c done (absorbed)", "d done", "e done",
            ])
    }

    @Test(arguments: ["taken back", "failed"])
    func `content that later content replaced is processed if the later content fails`(end: String) async throws {
        let fixture = try await Fixture()
        try await fixture.receive(
            Fixture.frame("a", "content", Self.refresh), Fixture.frame("b", "content", #"{"action":"roots"}"#),
            Fixture.frame("c", "content", #"{"action":"remove","object":"pump"}"#))
        #expect(try await fixture.inbox.next()?.key.update == "b")
        try await fixture.inbox.setOwner(Fixture.owner)
        let first = try #require(try await fixture.inbox.next())
        #expect(first.key.update == "b", "a start changes nothing of it")
        try await fixture.inbox.finished(first, .done())
        if end == "failed" {
            let later = try #require(try await fixture.inbox.next())
            #expect(later.key.update == "c")
            try await fixture.inbox.finished(later, .failed(isPermanent: true, reason: "r"))
        } else {
            try await fixture.receive(Fixture.frame("c", "content", attempt: 0))
        }
        try await fixture.process()
        #expect(fixture.content.content.applied.count == 1)
        #expect(try await fixture.results().contains("a done"))
    }

    @Test func `an update of an unknown kind or action is unsupported, and other updates are processed`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(
            Fixture.frame("a", "hologram"), Fixture.frame("b", "content", #"{"action":"teleport"}"#),
            Fixture.frame("c", "com.example.route"), Fixture.frame("d", "content", Self.refresh))
        try await fixture.process()
        let results = try await fixture.results()
        #expect(Set(results) == ["a unsupported", "b unsupported", "c unsupported", "d done"])
    }

    // MARK: Maintenance

    @Test func `a maintenance goes offline, and its end restores the mode`() async throws {
        for mode in [SyncMode.automatic, .manual, .offline] {
            let fixture = try await Fixture(ContentFixture(mode))
            try await fixture.receive(Fixture.frame("a", "status", Self.maintenance))
            try await fixture.process()
            #expect(fixture.content.content.mode == .offline)
            try await fixture.receive(Fixture.frame("b", "definitions"))
            try await fixture.process()
            #expect(try await fixture.results() == ["a done", "b deferred maintenanceOver (maintenance)"])
            try await fixture.receive(Fixture.frame("c", "status", #"{"status":"over"}"#))
            try await fixture.process()
            #expect(try await fixture.results() == ["a done", "c done", "b done"])
            #expect(fixture.content.content.mode == .automatic, "after the definitions")
            #expect(fixture.content.content.definitions == 2)
        }
        let fixture = try await Fixture(ContentFixture(.manual))
        try await fixture.receive(Fixture.frame("a", "status", Self.maintenance))
        try await fixture.receive(Fixture.frame("b", "status", Self.maintenance))
        try await fixture.process()
        try await fixture.receive(Fixture.frame("c", "status", #"{"status":"over"}"#))
        try await fixture.process()
        #expect(fixture.content.content.mode == .manual, "remembered once")
        #expect(try await fixture.inbox.maintenance() == nil)
    }

    @Test func `a mode that the user chose meanwhile stays`() async throws {
        let fixture = try await Fixture(ContentFixture(.automatic))
        let worker = fixture.worker()
        try await fixture.receive(Fixture.frame("a", "status", Self.maintenance))
        try await fixture.process()
        for mode in [SyncMode.manual, .offline] {
            fixture.content.state.withLock { $0.content.mode = mode }
            try await worker.happened(.modeChanged(mode))
        }
        _ = try await worker.advanceMaintenance()
        try await fixture.receive(Fixture.frame("b", "status", #"{"status":"over"}"#))
        try await fixture.process()
        #expect(fixture.content.content.mode == .offline)
    }

    @Test func `a maintenance begins and ends at its time`() async throws {
        let fixture = try await Fixture(ContentFixture(.manual))
        let now = fixture.clock.withLock { $0 }
        let (from, until) = (Timestamp3339.text(now + 400), Timestamp3339.text(now + 900))
        try await fixture.receive(
            Fixture.frame("a", "status", #"{"status":"maintenance","from":"\#(from)","until":"\#(until)"}"#))
        try await fixture.process()
        #expect(try await fixture.results() == ["a done"])
        let worker = fixture.worker()
        for (moment, mode, next) in [
            (now + 399, SyncMode.manual, now + 400), (now + 400, .offline, now + 900), (now + 899, .offline, now + 900),
            (now + 900, .manual, nil),
        ] {
            fixture.clock.withLock { $0 = moment }
            #expect(try await worker.advanceMaintenance() == next)
            #expect(fixture.content.content.mode == mode)
        }
        // A maintenance that has ended when it is received is ignored.
        try await fixture.receive(Fixture.frame("b", "status", #"{"status":"maintenance","until":"\#(until)"}"#))
        try await fixture.process()
        #expect(try await fixture.inbox.maintenance() == nil && fixture.content.content.mode == .manual)
        // Nor does it end one that continues.
        try await fixture.receive(Fixture.frame("c", "status", Self.maintenance))
        try await fixture.process()
        try await fixture.receive(Fixture.frame("d", "status", #"{"status":"maintenance","until":"\(until)"}"#))
        try await fixture.process()
        #expect(try await fixture.inbox.maintenance()?.hasBegun == true && fixture.content.content.mode == .offline)
    }

    @Test func `a mode that the app chose without a message stays when the maintenance ends`() async throws {
        let fixture = try await Fixture(ContentFixture(.manual))
        try await fixture.receive(Fixture.frame("a", "status", Self.maintenance))
        try await fixture.process()
        fixture.content.state.withLock { $0.content.mode = .automatic }
        try await fixture.receive(Fixture.frame("b", "status", #"{"status":"over"}"#))
        try await fixture.process()
        #expect(fixture.content.content.mode == .automatic)
    }

    @Test func `a cancelled handler has no result`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "com.example.kind"))
        let worker = fixture.worker(custom: [
            "com.example.kind": { _ in
                fixture.content.state.withLock { $0.die }?()
                // Throws, as it was cancelled.
                try await Task.sleep(for: .seconds(60))
            }
        ])
        try await fixture.run(worker) { false }
        #expect(try await fixture.results().isEmpty)
        // Started again.
        try await fixture.inbox.setOwner(Fixture.owner)
        #expect(try await fixture.inbox.isAllProcessed() == false)
    }

    @Test(arguments: CommitConsent.allCases)
    func `the user is asked before the changes are committed, and is offline in any case`(_ consent: CommitConsent)
        async throws
    {
        let fixture = try await Fixture(ContentFixture(.manual, edits: 2))
        fixture.presenter.state.withLock { $0.consent = nil }
        try await fixture.receive(
            Fixture.frame("a", "status", Self.maintenance), Fixture.frame("b", "content", Self.refresh))
        let worker = fixture.worker()
        try await fixture.run(worker) {
            guard try await fixture.results() == ["b done"] else { return try await fixture.results().count > 1 }
            // The prompt delays nothing.
            fixture.presenter.state.withLock { $0.consent = consent }
            return false
        }
        let code = consent == .given ? "" : " (commit \(consent.rawValue))"
        #expect(try await fixture.results() == ["b done", "a done\(code)"])
        #expect(fixture.content.content.mode == .offline)
        #expect(fixture.content.content.edits == (consent == .given ? 0 : 2))
        #expect(fixture.presenter.seen.questions == ["a"])
    }

    // MARK: Popups

    @Test func `a popup is done only after its button is pressed, and is shown again after a restart`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "popup", #"{"style":"emergency","title":"t","lines":["l"]}"#))
        try await fixture.run(fixture.worker()) { fixture.presenter.seen.shown != nil }
        #expect(try await fixture.results().isEmpty)
        // Started again.
        try await fixture.inbox.setOwner(Fixture.owner)
        fixture.presenter.state.withLock { $0.shown = nil }
        try await fixture.run(fixture.worker()) {
            fixture.presenter.seen.shown?.press()
            return fixture.presenter.seen.dismissed > 0
        }
        #expect(try await fixture.results() == ["a done"])
        #expect(fixture.presenter.seen.all.first?.button == .ok)
    }

    @Test func `a popup opens its attached file, or abandons it and appears again`() async throws {
        let fixture = try await Fixture()
        let payload = #"{"style":"failure","title":"t","object":"pump"}"#
        try await fixture.receive(Fixture.frame("a", "popup", payload))
        fixture.content.state.withLock { $0.downloads[.object("pump")] = .failure(.retryable("gone")) }
        let press: @Sendable (PopupDialog.Button) -> Void = { button in
            if let shown = fixture.presenter.seen.shown, shown.button == button { shown.press() }
        }
        try await fixture.run(fixture.worker()) {
            press(.close)
            return fixture.presenter.seen.dismissed == 1
        }
        #expect(try await fixture.results() == ["a failed (gone)"])
        #expect(fixture.presenter.seen.failures.first?.message.contains("gone") == true)
        fixture.content.state.withLock { $0.downloads = [:] }
        try await fixture.receive(Fixture.frame("a", "popup", payload, attempt: 2))
        try await fixture.run(fixture.worker()) {
            if fixture.presenter.seen.shown?.button == .downloading(0.5) {
                fixture.content.state.withLock { $0.downloads[.object("pump")] = .success(()) }
            }
            press(.detail)
            return !fixture.presenter.seen.opened.isEmpty
        }
        #expect(try await fixture.results() == ["a done"])
        #expect(fixture.presenter.seen.opened == [.object("pump")])
        #expect(fixture.presenter.seen.all.contains { $0.button == .downloading(0.5) })
    }

    @Test func `a withdrawn popup disappears, and so does one of a user who left`() async throws {
        let fixture = try await Fixture()
        let payload = #"{"style":"failure","title":"t"}"#
        try await fixture.receive(Fixture.frame("a", "popup", payload), Fixture.frame("b", "popup", payload))
        let worker = fixture.worker()
        try await fixture.run(worker) { fixture.presenter.seen.shown != nil }
        await worker.arrived(try await fixture.receive(Fixture.frame("a", "popup", attempt: 0)))
        #expect(fixture.presenter.seen.dismissed == 1)
        try await eventually { fixture.presenter.seen.shown?.id == .init(key: UpdateKey(update: "b", entry: 1)) }
        await worker.endWork()
        #expect(fixture.presenter.seen.dismissed == 2 && fixture.presenter.seen.shown == nil)
    }

    // MARK: The app's own kinds

    @Test func `the app processes its own kinds, beside the others`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(
            Fixture.frame("a", "com.example.route", #"{"to":"here"}"#), Fixture.frame("b", "com.example.bad"),
            Fixture.frame("c", "com.example.worse"))
        let worker = fixture.worker(custom: [
            "com.example.route": { update in
                guard case .custom("com.example.route", let payload) = update.kind else { throw ContentFault.permanent("?") }
                #expect(String(decoding: payload, as: UTF8.self) == #"{"to":"here"}"#)
            },
            "com.example.bad": { _ in throw ContentFault.permanent("no") },
            "com.example.worse": { _ in throw CancellationError() },
        ])
        try await fixture.run(worker) { try await fixture.results().count == 3 }
        #expect(
            Set(try await fixture.results()) == ["a done", "b failed (no)", "c failed (CancellationError)"])
    }
}
