import CarillonBasics
import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// An answer of the user, a press and a download after their update ended, was replaced or withdrawn.
@Suite(.timeLimit(.minutes(5)))
struct LateAnswerTests {
    private typealias Fixture = ProcessingFixture

    /// The actions of a test while a worker runs: each step until it returns true, then the next.
    private final class Script: Sendable {
        typealias Step = @Sendable () async throws -> Bool

        private let steps: [Step]
        private let place = Mutex(0)

        init(_ steps: Step...) { self.steps = steps }

        @Sendable func isOver() async throws -> Bool {
            let present = place.withLock { $0 }
            guard present < steps.count else { return true }
            if try await steps[present]() { place.withLock { $0 += 1 } }
            return false
        }

        /// Lets the worker process the waiting updates.
        static func pause() -> Step {
            let rounds = Rounds()
            return { rounds.next() }
        }
    }

    private final class Rounds: Sendable {
        private let count = Mutex(0)

        func next() -> Bool {
            count.withLock { count in
                count += 1
                return count > 20
            }
        }
    }

    private static let maintenance = #"{"status":"maintenance"}"#

    /// A device with edits, whose user does not answer yet.
    private static func asked() async throws -> Fixture {
        let fixture = try await Fixture(ContentFixture(.manual, edits: 2))
        fixture.presenter.state.withLock { $0.consent = nil }
        try await fixture.receive(Fixture.frame("a", "status", maintenance))
        return fixture
    }

    @Test(arguments: CommitConsent.allCases)
    func `an answer after the end of the maintenance changes nothing`(_ consent: CommitConsent) async throws {
        let fixture = try await Self.asked()
        let worker = fixture.worker()
        let script = Script(
            { fixture.presenter.seen.questions == ["a"] },
            {
                await worker.arrived(try await fixture.receive(Fixture.frame("b", "status", #"{"status":"over"}"#)))
                return true
            },
            { try await fixture.results().contains("b done") },
            {
                #expect(fixture.content.content.mode == .manual)
                fixture.presenter.state.withLock { $0.consent = consent }
                return true
            }, Script.pause())
        try await fixture.run(worker) { try await script.isOver() }
        #expect(fixture.content.content.mode == .manual)
        #expect(fixture.content.content.edits == 2 && fixture.content.content.commits == 0)
        #expect(try await fixture.inbox.maintenance() == nil)
        #expect(try await fixture.results() == ["a done (over)", "b done"])
    }

    @Test(arguments: CommitConsent.allCases)
    func `an answer after another maintenance was announced changes nothing of that`(_ consent: CommitConsent) async throws {
        let fixture = try await Self.asked()
        let worker = fixture.worker()
        let until = fixture.clock.withLock { $0 } + 3_600_000
        let later = #"{"status":"maintenance","until":"\#(Timestamp3339.text(until))"}"#
        let script = Script(
            { fixture.presenter.seen.questions == ["a"] },
            {
                // The user committed: there is nothing to ask about the second one.
                fixture.content.state.withLock { $0.content.edits = 0 }
                await worker.arrived(try await fixture.receive(Fixture.frame("b", "status", later)))
                return true
            },
            { try await fixture.results().contains("b done") },
            {
                fixture.presenter.state.withLock { $0.consent = consent }
                return true
            }, Script.pause())
        try await fixture.run(worker) { try await script.isOver() }
        #expect(try await fixture.inbox.maintenance()?.endsAt == until)
        #expect(try await fixture.results() == ["a done (replaced)", "b done"])
        #expect(fixture.presenter.seen.questions == ["a"])
    }

    @Test(arguments: CommitConsent.allCases)
    func `an answer about a withdrawn update does not apply to its new delivery`(_ consent: CommitConsent) async throws {
        let fixture = try await Self.asked()
        let worker = fixture.worker()
        let script = Script(
            { fixture.presenter.seen.questions == ["a"] },
            {
                await worker.arrived(try await fixture.receive(Fixture.frame("a", "status", attempt: 0)))
                fixture.presenter.state.withLock { $0.consent = consent }
                return true
            }, Script.pause(),
            {
                fixture.presenter.state.withLock { $0.consent = nil }
                await worker.arrived(
                    try await fixture.receive(Fixture.frame("a", "status", Self.maintenance, attempt: 2)))
                return true
            }, Script.pause())
        try await fixture.run(worker) { try await script.isOver() }
        #expect(fixture.presenter.seen.questions == ["a", "a"])
        #expect(fixture.content.content.edits == 2)
        #expect(try await fixture.results().isEmpty)
    }

    @Test func `an answer that was not used before its update was withdrawn does not apply to a new delivery`()
        async throws
    {
        let fixture = try await Self.asked()
        let worker = fixture.worker()
        let update = try #require(try await fixture.inbox.next())
        try await fixture.inbox.setAway(update)
        let question = await worker.beginSideWork(of: update)
        await worker.answered(update, question, .given)
        await worker.arrived(try await fixture.receive(Fixture.frame("a", "status", attempt: 0)))
        await worker.arrived(try await fixture.receive(Fixture.frame("a", "status", Self.maintenance, attempt: 2)))
        try await fixture.run(worker) {
            !fixture.presenter.seen.questions.isEmpty || fixture.content.content.commits > 0
        }
        #expect(fixture.presenter.seen.questions == ["a"])
        #expect(fixture.content.content.edits == 2 && fixture.content.content.commits == 0)
    }

    @Test func `an announcement that failed and is repeated after its end changes nothing`() async throws {
        let fixture = try await Fixture(ContentFixture(.manual))
        try await fixture.receive(Fixture.frame("a", "status", Self.maintenance))
        let update = try #require(try await fixture.inbox.next())
        try await fixture.inbox.finished(update, .failed(isPermanent: false, reason: "r"))
        try await fixture.receive(Fixture.frame("b", "status", #"{"status":"over"}"#))
        try await fixture.process()
        try await fixture.receive(Fixture.frame("a", "status", Self.maintenance, attempt: 2))
        try await fixture.process()
        #expect(fixture.content.content.mode == .manual)
        #expect(Set(try await fixture.results()) == ["a done (over)", "b done"])
    }

    @Test func `an announcement that has ended when it arrives ends no prompt`() async throws {
        let fixture = try await Self.asked()
        let worker = fixture.worker()
        let past = Timestamp3339.text(fixture.clock.withLock { $0 } - 1000)
        let script = Script(
            { fixture.presenter.seen.questions == ["a"] },
            {
                let payload = #"{"status":"maintenance","until":"\#(past)"}"#
                await worker.arrived(try await fixture.receive(Fixture.frame("b", "status", payload)))
                return true
            },
            { try await fixture.results() == ["b done"] },
            {
                fixture.presenter.state.withLock { $0.consent = .given }
                return try await fixture.results() == ["b done", "a done"]
            })
        try await fixture.run(worker) { try await script.isOver() }
        #expect(fixture.content.content.commits == 2 && fixture.content.content.mode == .offline)
    }

    // MARK: Popups

    @Test func `a press in a closed dialog does not confirm a later dialog of the same update`() async throws {
        let fixture = try await Fixture()
        let payload = #"{"style":"failure","title":"t"}"#
        try await fixture.receive(Fixture.frame("a", "popup", payload))
        let worker = fixture.worker()
        let script = Script(
            { fixture.presenter.seen.shown != nil },
            {
                await worker.arrived(try await fixture.receive(Fixture.frame("a", "popup", attempt: 0)))
                await worker.arrived(try await fixture.receive(Fixture.frame("a", "popup", payload, attempt: 2)))
                return true
            },
            { fixture.presenter.seen.all.count == 2 },
            {
                fixture.presenter.seen.all[0].press()
                return true
            }, Script.pause(),
            {
                guard fixture.presenter.seen.dismissed == 1 else { return false }
                let results = try await fixture.results()
                #expect(results.isEmpty)
                fixture.presenter.seen.all[1].press()
                return true
            },
            { try await fixture.results() == ["a done"] })
        try await fixture.run(worker) { try await script.isOver() }
    }

    @Test func `a popup that one answer withdraws and delivers again has a new dialog`() async throws {
        let fixture = try await Fixture()
        let payload = #"{"style":"failure","title":"t"}"#
        try await fixture.receive(Fixture.frame("a", "popup", payload))
        let worker = fixture.worker()
        let arrivals = Mutex<[Arrival]>([])
        let script = Script(
            { fixture.presenter.seen.shown != nil },
            {
                let arrival = try await fixture.receive(
                    Fixture.frame("a", "popup", attempt: 0), Fixture.frame("a", "popup", payload, attempt: 2))
                arrivals.withLock { $0.append(arrival) }
                return true
            }, Script.pause(),
            {
                for arrival in arrivals.withLock({ $0 }) { await worker.arrived(arrival) }
                return true
            }, Script.pause(),
            {
                guard fixture.presenter.seen.dismissed == 1, fixture.presenter.seen.all.count == 2 else { return false }
                fixture.presenter.seen.all.last?.press()
                return true
            },
            { try await fixture.results() == ["a done"] })
        try await fixture.run(worker) { try await script.isOver() }
        #expect(try await fixture.results() == ["a done"])
    }

    @Test func `a press after the update was taken back from the storage opens nothing`() async throws {
        let fixture = try await Fixture()
        fixture.content.state.withLock { $0.downloads[.object("pump")] = .success(()) }
        try await fixture.receive(Fixture.frame("a", "popup", #"{"style":"failure","title":"t","object":"pump"}"#))
        let worker = fixture.worker()
        let script = Script(
            { fixture.presenter.seen.shown?.button == .detail },
            {
                // The worker does not know yet.
                try await fixture.receive(Fixture.frame("a", "popup", attempt: 0))
                fixture.presenter.seen.shown?.press()
                return true
            },
            { fixture.presenter.seen.dismissed == 1 }, Script.pause())
        try await fixture.run(worker) { try await script.isOver() }
        #expect(fixture.presenter.seen.opened.isEmpty)
        #expect(try await fixture.results().isEmpty)
    }

    @Test func `a download for a closed dialog does not apply to a later dialog of the same update`() async throws {
        let fixture = try await Fixture()
        func frame(_ object: String, _ attempt: Int) -> UpdateFrame {
            Fixture.frame(
                "a", "popup", #"{"style":"failure","title":"t","object":"\#(object)"}"#, attempt: attempt)
        }
        let (first, second) = (frame("pump", 1), frame("valve", 2))
        try await fixture.receive(first)
        let worker = fixture.worker()
        let script = Script(
            { fixture.presenter.seen.shown?.button == .downloading(0.5) },
            {
                await worker.arrived(try await fixture.receive(Fixture.frame("a", "popup", attempt: 0)))
                await worker.arrived(try await fixture.receive(second))
                return true
            },
            { fixture.presenter.seen.shown?.popup.attachment == .object("valve") }, Script.pause(),
            {
                // It is cancelled.
                guard fixture.content.state.withLock({ $0.downloadsEnded[.object("pump")] }) == 1 else { return false }
                fixture.content.state.withLock { $0.downloads[.object("pump")] = .success(()) }
                return true
            }, Script.pause(),
            {
                #expect(fixture.presenter.seen.shown?.button.isEnabled == false)
                fixture.content.state.withLock { $0.downloads[.object("valve")] = .success(()) }
                return true
            },
            { fixture.presenter.seen.shown?.button == .detail })
        try await fixture.run(worker) { try await script.isOver() }
    }

    // MARK: The app's own kinds

    @Test func `a handler that ends after its update was withdrawn does not report for the new delivery`()
        async throws
    {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "com.example.kind"))
        let starts = Gate()
        let worker = fixture.worker(custom: [
            "com.example.kind": { update in
                starts.add(update.attempt)
                // The first one ends after the second one began, which does not end.
                while update.attempt == 2 || !starts.has(2) { try await Task.sleep(for: .milliseconds(2)) }
            }
        ])
        let script = Script(
            { starts.has(1) },
            {
                await worker.arrived(try await fixture.receive(Fixture.frame("a", "com.example.kind", attempt: 0)))
                await worker.arrived(try await fixture.receive(Fixture.frame("a", "com.example.kind", attempt: 2)))
                return true
            },
            { starts.has(2) }, Script.pause())
        try await fixture.run(worker) { try await script.isOver() }
        #expect(try await fixture.results().isEmpty)
    }

    private final class Gate: Sendable {
        private let attempts = Mutex<Set<Int>>([])

        func add(_ attempt: Int) { attempts.withLock { _ = $0.insert(attempt) } }
        func has(_ attempt: Int) -> Bool { attempts.withLock { $0.contains(attempt) } }
    }
}
