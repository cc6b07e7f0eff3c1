import CarillonWire
import Foundation
import GRDB
import TestSupport
import Testing

@testable import CarillonClient

/// The stored data of an owner while the device has another owner, or none.
@Suite(.timeLimit(.minutes(5)))
struct UpdateOwnersTests {
    private typealias Fixture = ProcessingFixture

    private static let refresh = #"{"action":"refresh","object":"pump"}"#
    private static let others = [
        nil, UpdateOwner(device: "d", user: "bob", profile: ""), UpdateOwner(device: "d", user: "ada", profile: "other"),
    ]

    @Test(arguments: others)
    func `an owner who returns finds the results that the server did not accept, and nothing is repeated`(
        _ other: UpdateOwner?
    ) async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        try await fixture.receive(Fixture.frame("a", "content", Self.refresh), Fixture.frame("b", "hologram"))
        try await fixture.process()
        #expect(fixture.content.content.applied.count == 1)
        let results = try await fixture.results()
        #expect(Set(results) == ["a done", "b unsupported"])
        try await inbox.setOwner(other)
        #expect(try await fixture.results().isEmpty, "they are not another's")
        try await inbox.setOwner(Fixture.owner)
        let word = try await inbox.report(results: 9)
        #expect(word.position == nil)
        #expect(try await fixture.results() == results)
        // The server did not receive the result, and delivers the update again.
        let arrival = try await fixture.receive(Fixture.frame("a", "content", Self.refresh, attempt: 2))
        #expect(arrival.counts.isEmpty)
        try await fixture.process()
        #expect(fixture.content.content.applied.count == 1)
        #expect(Set(try await fixture.results()) == ["a done", "b unsupported"])
    }

    @Test func `a popup that was confirmed is not shown again after its user returned`() async throws {
        let fixture = try await Fixture()
        let popup = Fixture.frame("a", "popup", #"{"style":"emergency","title":"t"}"#)
        try await fixture.receive(popup)
        try await fixture.run(fixture.worker()) {
            fixture.presenter.seen.shown?.press()
            return fixture.presenter.seen.dismissed > 0
        }
        try await fixture.inbox.setOwner(nil)
        try await fixture.inbox.setOwner(Fixture.owner)
        try await fixture.receive(popup)
        #expect(try await fixture.inbox.isAllProcessed())
        #expect(try await fixture.results() == ["a done"])
    }

    @Test func `another owner's update of the same name is processed`() async throws {
        let fixture = try await Fixture()
        let bob = UpdateOwner(device: "d", user: "bob", profile: "")
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await fixture.inbox.finished(try #require(try await fixture.inbox.next()), .done())
        try await fixture.inbox.setOwner(bob)
        _ = try await fixture.inbox.received(
            PollAnswer(updates: [Fixture.frame("a", "definitions")]), to: nil, by: bob, reported: [], parameters: nil)
        let update = try #require(try await fixture.inbox.next())
        try await fixture.inbox.finished(update, .failed(isPermanent: false, reason: "r"))
        #expect(try await fixture.results() == ["a failed (r)"])
        try await fixture.inbox.setOwner(Fixture.owner)
        #expect(try await fixture.results() == ["a done"])
    }

    @Test func `a result that the server accepted is not sent by an owner who returns`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await fixture.inbox.finished(try #require(try await fixture.inbox.next()), .done())
        let word = try await fixture.inbox.report(results: 9)
        _ = try await fixture.inbox.received(
            PollAnswer(), to: word.position, by: Fixture.owner, reported: word.results, parameters: nil)
        try await fixture.inbox.setOwner(nil)
        try await fixture.inbox.setOwner(Fixture.owner)
        #expect(try await fixture.results().isEmpty)
    }

    @Test func `of nine owners the least recently used one is forgotten`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        func owner(_ number: Int) -> UpdateOwner { UpdateOwner(device: "d", user: "user\(number)", profile: "") }
        func finishOne(_ owner: UpdateOwner) async throws {
            try await inbox.setOwner(owner)
            _ = try await inbox.received(
                PollAnswer(updates: [Fixture.frame("a", "definitions")]), to: nil, by: owner, reported: [], parameters: nil)
            try await inbox.finished(try #require(try await inbox.next()), .done())
        }
        for number in 1...UpdateInbox.rememberedOwners { try await finishOne(owner(number)) }
        // The first one is used again: the second one is the oldest then.
        try await inbox.setOwner(owner(1))
        #expect(try await fixture.results() == ["a done"])
        try await finishOne(owner(9))
        for (number, isKnown) in [(1, true), (3, true), (9, true), (2, false)] {
            try await inbox.setOwner(owner(number))
            #expect(try await fixture.results() == (isKnown ? ["a done"] : []), "\(number)")
        }
        let counts = try await inbox.store.inStep { db in
            try ["update_owner", "update_done", "update_result"].map { table in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)")
            }
        }
        #expect(counts == [8, 7, 7])
    }

    @Test func `the newest ten thousand results of an owner are stored, regardless of other owners`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        try await inbox.setOwner(UpdateOwner(device: "d", user: "bob", profile: ""))
        try await inbox.setOwner(Fixture.owner)
        try await inbox.store.inStep { db in
            try db.inTransaction {
                for number in 0..<UpdateInbox.rememberedDone {
                    for owner in 1...2 {
                        try db.execute(
                            sql: "INSERT INTO update_result (owner, id, entry, result) VALUES (?, ?, 1, '{}')",
                            arguments: [owner, "old\(number)"])
                    }
                }
                return .commit
            }
        }
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await inbox.finished(try #require(try await inbox.next()), .done())
        let left = try await inbox.store.inStep { db in
            try [1, 2].map { owner in
                try String.fetchAll(
                    db, sql: "SELECT id FROM update_result WHERE owner = ? ORDER BY number", arguments: [owner])
            }
        }
        #expect(left[0].count == UpdateInbox.rememberedDone && left[0].first == "old1" && left[0].last == "a")
        #expect(left[1].count == UpdateInbox.rememberedDone && left[1].first == "old0")
    }

    @Test func `an owner's finished updates remove none of others`() async throws {
        let fixture = try await Fixture()
        let inbox = fixture.inbox
        try await inbox.setOwner(UpdateOwner(device: "d", user: "bob", profile: ""))
        try await inbox.setOwner(Fixture.owner)
        try await inbox.store.inStep { db in
            for (owner, number, id) in [(1, UpdateInbox.rememberedDone + 1, "old"), (2, 1, "of bob")] {
                try db.execute(
                    sql: "INSERT INTO update_done (owner, number, id, entry, result) VALUES (?, ?, ?, 1, '{}')",
                    arguments: [owner, number, id])
            }
        }
        try await fixture.receive(Fixture.frame("a", "definitions"))
        try await inbox.finished(try #require(try await inbox.next()), .done())
        let left = try await inbox.store.inStep { db in
            try String.fetchAll(db, sql: "SELECT id FROM update_done ORDER BY owner, number")
        }
        #expect(left == ["old", "a", "of bob"])
    }

    @Test func `nothing of a payload is stored for a former owner, and nothing at all for a deleted device`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(
            Fixture.frame("a", "content", Self.refresh), Fixture.frame("b", "com.example.x", #"{"secret":"pump"}"#))
        try await fixture.process()
        try await fixture.inbox.setOwner(nil)
        func rows() async throws -> [String] {
            try await fixture.inbox.store.inStep { db in
                try ["update_inbox", "update_place", "update_owner", "update_done", "update_result"].flatMap { table in
                    try Row.fetchAll(db, sql: "SELECT * FROM \(table)").map { "\($0)" }
                }
            }
        }
        let left = try await rows()
        #expect(left.count == 4 && !left.contains { $0.contains("pump") }, "\(left)")
        try await fixture.inbox.store.inStep { try StoreChange.eraseIdentity.apply(to: $0) }
        #expect(try await rows().isEmpty)
    }

    @Test func `a storage of version 9 is taken over with its results`() async throws {
        let directory = TemporaryDirectory()
        do {
            let store = try ClientStore(directory: directory.path)
            let inbox = UpdateInbox(store: store)
            try await inbox.setOwner(Fixture.owner)
            try await store.inStep { db in
                try ClientSchemaUndo.version12(db)
                try ClientSchemaUndo.version11(db)
                try ClientSchemaUndo.version10(db)
                for table in ["update_done", "update_result"] {
                    try db.execute(
                        sql: "INSERT INTO \(table) (id, entry, result) VALUES ('a', 1, ?)",
                        arguments: [UpdateOutcome.done().json(of: UpdateKey(update: "a", entry: 1), 1)])
                }
            }
        }
        let inbox = UpdateInbox(store: try ClientStore(directory: directory.path, patience: 60))
        try await inbox.setOwner(Fixture.owner)
        #expect(try await inbox.report(results: 9).results.count == 1)
        _ = try await inbox.received(
            PollAnswer(updates: [Fixture.frame("a", "definitions")]), to: nil, by: Fixture.owner, reported: [],
            parameters: nil)
        #expect(try await inbox.next() == nil)
    }
}
