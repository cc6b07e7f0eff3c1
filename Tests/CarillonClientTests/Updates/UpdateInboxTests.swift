import CarillonBasics
import CarillonWire
import Foundation
import GRDB
import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(5)))
struct UpdateInboxTests {
    private typealias Fixture = ProcessingFixture

    @Test func `another owner finds nothing of the one before, and the same one everything`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        try await fixture.receive(Fixture.frame("a", "definitions"), Fixture.frame("b", "hologram"))
        let update = try #require(try await inbox.next())
        try await inbox.setAway(update)
        try await inbox.setOwner(Fixture.owner)
        #expect(try await inbox.next() == update, "whoever is started again looks at it again")
        #expect(try await inbox.report(results: 9).position == "p")
        for other in [
            UpdateOwner(device: "d", user: "bob", profile: ""), UpdateOwner(device: "e", user: "ada", profile: ""),
            UpdateOwner(device: "d", user: "ada", profile: "other"), nil,
        ] {
            try await inbox.setOwner(Fixture.owner)
            try await fixture.receive(Fixture.frame("a", "definitions"), Fixture.frame("b", "hologram"))
            try await inbox.setOwner(other)
            #expect(try await inbox.next() == nil)
            let word = try await inbox.report(results: 9)
            #expect(word.position == nil && word.results.isEmpty && word.parameters == nil)
        }
    }

    @Test func `an answer to a request of a former owner is not stored`() async throws {
        let fixture = try await Fixture()
        try await fixture.inbox.setOwner(UpdateOwner(device: "d", user: "bob", profile: ""))
        let arrival = try await fixture.receive(Fixture.frame("a", "definitions"))
        #expect(!arrival.isStored && arrival.counts.isEmpty)
        #expect(try await fixture.inbox.next() == nil)
        #expect(try await fixture.inbox.report(results: 9).position == nil)
    }

    @Test func `of two answers to one request the second repeats its updates, and does not lower the position`() async throws
    {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        let asked = try await inbox.report(results: 9).position
        _ = try await inbox.received(
            PollAnswer(updates: [Fixture.frame("a", "definitions")], position: "2"), to: asked, by: Fixture.owner,
            reported: [],
            parameters: nil)
        let late = try await inbox.received(
            PollAnswer(updates: [Fixture.frame("b", "definitions")], position: "1"), to: asked, by: Fixture.owner,
            reported: [],
            parameters: "r1")
        #expect(late.isStored && late.counts.isEmpty)
        let word = try await inbox.report(results: 9)
        #expect(word.position == "2" && word.parameters == "r1")
        let waiting = try #require(try await inbox.next())
        #expect(waiting.key.update == "a")
        try await inbox.finished(waiting, .done())
        #expect(try await inbox.next() == nil)
    }

    @Test func `a reported result is removed, and a newer one stays`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        try await fixture.receive(Fixture.frame("a", "definitions"), Fixture.frame("b", "definitions"))
        let (one, _) = (try #require(try await inbox.next()), 0)
        try await inbox.finished(one, .deferred(until: .committed, reason: "r"))
        let said = try await inbox.report(results: 1).results
        #expect(said.count == 1)
        try await inbox.finished(one, .done())
        _ = try await inbox.received(PollAnswer(), to: nil, by: Fixture.owner, reported: said, parameters: "r1")
        #expect(try await fixture.results() == ["a done"])
        #expect(try await inbox.report(results: 9).parameters == "r1")
    }

    @Test func `the position is forgotten when the server will not have it`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive()
        #expect(try await fixture.inbox.report(results: 9).position == "p")
        try await fixture.inbox.clearPosition()
        #expect(try await fixture.inbox.report(results: 9).position == nil)
    }

    @Test func `a later attempt is processed again, and an earlier one is not`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        try await fixture.receive(Fixture.frame("a", "definitions", attempt: 3))
        let update = try #require(try await inbox.next())
        #expect(update.attempt == 3)
        try await inbox.finished(update, .failed(isPermanent: false, reason: "r"))
        for attempt in [2, 3] {
            try await fixture.receive(Fixture.frame("a", "definitions", attempt: attempt))
            #expect(try await inbox.next() == nil)
        }
        try await fixture.receive(Fixture.frame("a", "definitions", attempt: 4))
        #expect(try await inbox.next()?.attempt == 4)
    }

    @Test func `the newest completed updates are remembered, up to a limit`() async throws {
        let fixture = try await Fixture()
        let store = fixture.inbox.store
        try await store.inStep { db in
            for number in 0...UpdateInbox.rememberedDone {
                try db.execute(
                    sql: "INSERT INTO update_done (owner, number, id, entry, result) VALUES (1, ?, ?, 1, '{}')",
                    arguments: [number, "old\(number)"])
            }
        }
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await fixture.inbox.finished(try #require(try await fixture.inbox.next()), .done())
        let known = try await store.inStep { db in
            try String.fetchAll(db, sql: "SELECT id FROM update_done ORDER BY number")
        }
        #expect(known.count == UpdateInbox.rememberedDone && known.first == "old2" && known.last == "a")
    }

    @Test func `only the updates that wait for a dependency are checked again`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        for condition in DeferralCondition.allCases {
            try await fixture.receive(Fixture.frame(condition.rawValue, "definitions"))
            let update = try #require(try await inbox.next())
            try await inbox.finished(update, .deferred(until: condition, reason: "r"))
        }
        for condition in DeferralCondition.allCases {
            #expect(try await inbox.next() == nil)
            try await inbox.happened(condition)
            let update = try #require(try await inbox.next())
            #expect(update.key.update == condition.rawValue)
            try await inbox.finished(update, .done())
        }
    }

    @Test func `the space for waiting updates is bounded, and completed ones are remembered`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        let frames = (0..<UpdateInbox.mostWaiting).map { Fixture.frame("u\($0)", "definitions") }
        _ = try await inbox.received(PollAnswer(updates: frames), to: nil, by: Fixture.owner, reported: [], parameters: nil)
        #expect(try await inbox.report(results: 0).capacity == 0)
        let update = try #require(try await inbox.next())
        try await inbox.finished(update, .done())
        #expect(try await inbox.report(results: 0).capacity == 1)
        try await fixture.receive(Fixture.frame("u0", "definitions", attempt: 2))
        #expect(try await inbox.report(results: 0).capacity == 1)
    }

    @Test func `a failed update waits for the server, takes no space, and is not kept forever`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        for number in 0...UpdateInbox.rememberedFailed {
            try await fixture.receive(Fixture.frame("u\(number)", "definitions"))
            let update = try #require(try await inbox.next())
            try await inbox.finished(update, .failed(isPermanent: true, reason: "r"))
        }
        #expect(try await inbox.report(results: 0).capacity == UpdateInbox.mostWaiting)
        try await inbox.setOwner(Fixture.owner)
        #expect(try await inbox.next() == nil, "a start is no reason to try again")
        try await fixture.receive(Fixture.frame("u1", "definitions"))
        #expect(try await inbox.next() == nil)
        try await fixture.receive(Fixture.frame("u0", "definitions"))
        #expect(try await inbox.next()?.key.update == "u0", "the oldest is forgotten")
    }

    @Test func `an update that was not understood is checked when it arrives again`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await inbox.finished(try #require(try await inbox.next()), .unsupported)
        #expect(try await fixture.results() == ["a unsupported"])
        try await fixture.receive(Fixture.frame("a", "definitions", attempt: 2))
        #expect(try await inbox.next()?.attempt == 2)
    }

    @Test func `reasons are short enough for the server`() throws {
        let key = UpdateKey(update: "a", entry: 1)
        let long = String(repeating: "é", count: 5000)
        for outcome in [
            UpdateOutcome.done(code: long), .deferred(until: .mode, reason: long), .failed(isPermanent: true, reason: long),
        ] {
            let json = try #require(JSONValue(parsing: Array(outcome.json(of: key, 1).utf8)))
            guard case .string(let reason)? = json["reason"] else { return #expect(Bool(false)) }
            #expect(reason == String(repeating: "é", count: 128), "256 bytes")
        }
    }
}
