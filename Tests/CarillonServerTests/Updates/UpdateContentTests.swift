import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Later content replaces earlier content, and a request to fetch everything replaces missed content.
@Suite(.timeLimit(.minutes(5)))
struct UpdateContentTests {
    private static func refresh(_ object: String, children: Int = 0) -> String {
        #"{"action":"refresh","object":"\#(object)","children":\#(children)}"#
    }

    private static let roots = #"{"action":"roots"}"#

    /// The updates that ask a device to fetch everything: the counts of the app's own update for that.
    private func resyncs(_ world: UpdateWorld) async throws -> [String: Int] {
        guard let update = try await resync(world) else { return [:] }
        return try await world.counts(update)
    }

    private func resync(_ world: UpdateWorld) async throws -> String? {
        let answer = try await world.routes.request(.get, "/v1/updates", key: world.sender)
        guard case .array(let updates)? = answer.json?["updates"] else { return nil }
        for update in updates where update["resync"] == .bool(true) {
            #expect(update["payload"] == .object([.init(name: "action", value: .string("resync"))]))
            if case .string(let id)? = update["id"] { return id }
        }
        return nil
    }

    /// Publishes while no device is connected, so that nothing is delivered before a device polls.
    private func publish(
        _ world: UpdateWorld, _ payload: String? = nil, audience: String? = nil, _ rest: String = ""
    ) async throws -> String {
        world.advance(seconds: 10)
        try await world.sweep()
        return try await world.publish("content", payload, audience: audience, rest)
    }

    // MARK: Coalescing

    @Test func `later content replaces earlier content that waits, and nothing else`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let deep = try await publish(world, Self.refresh("a", children: 2))
        let other = try await publish(world, Self.refresh("b"))
        let popup = try await world.publish("popup", #"{"style":"failure","title":"t"}"#)
        let flat = try await publish(world, Self.refresh("a"))
        let removal = try await publish(world, #"{"action":"remove","object":"a"}"#)
        let keyed = try await publish(world, #"{"action":"remove","object":"b"}"#, #","orderKey":"k""#)
        #expect(try await world.poll().map(\.update) == [other, popup, removal, keyed])
        for coalesced in [deep, flat] { #expect(try await world.counts(coalesced) == ["superseded": 1]) }
        let answer = try await world.routes.request(.get, "/v1/updates/\(deep)/devices", key: world.sender)
        guard case .array(let devices)? = answer.json?["devices"] else { return #expect(Bool(false)) }
        #expect(devices.map { $0["reason"] } == [.string("absorbed")])
    }

    @Test func `content that waits in the inbox is removed when later content replaces it`() async throws {
        let world = try await UpdateWorld()
        let first = try await publish(world, Self.roots)
        // It is stored in the inbox, and not acknowledged.
        try await world.ask(nil, #""max":0"#)
        #expect(try await world.counts(first) == ["waiting": 1])
        let second = try await publish(world, Self.roots)
        try await world.ask(nil, #""max":0"#)
        #expect(try await world.counts(first) == ["superseded": 1])
        #expect(try await world.poll().map(\.update) == [second])
        // The device itself coalesces its own content.
        let third = try await publish(world, Self.roots)
        #expect(try await world.poll().map(\.update) == [third])
        #expect(try await world.counts(second) == ["stored": 1])
    }

    @Test(arguments: ["withdrawn", "superseded", "left", "parked"])
    func `coalesced content is delivered when its replacement fails`(end: String) async throws {
        let world = try await UpdateWorld()
        let north = UpdateWorld.parameters(#""region":"north""#)
        try await world.ask(nil, north)
        let first = try await publish(world, Self.roots)
        let second = try await publish(world, Self.roots, audience: "region == 'north'")
        let copies = try await world.poll(nil, end == "parked" ? "" : #""max":0"#)
        #expect(try await world.counts(first) == ["superseded": 1])
        switch end {
        case "withdrawn": try await world.withdraw(second)
        case "superseded":
            _ = try await world.publish("popup", #"{"style":"failure","title":"t"}"#, #","supersedes":"\#(second)""#)
        case "left": try await world.ask(nil, UpdateWorld.parameters(#""region":"south""#, revision: "2") + #","max":0"#)
        default:
            try await world.ask(
                nil, UpdateWorld.result(try #require(copies.first), "failed", #","permanent":true"#) + #","max":0"#)
        }
        try await world.sweep()
        #expect(try await world.poll().map(\.update).contains(first))
        #expect(try await world.counts(first) == ["waiting": 1])
    }

    @Test func `content that was coalesced by coalesced content is delivered with it`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        var updates: [String] = []
        for _ in 0..<3 {
            updates.append(try await publish(world, Self.roots))
            try await world.ask(nil, #""max":0"#)
        }
        for update in updates[..<2] { #expect(try await world.counts(update) == ["superseded": 1]) }
        try await world.withdraw(updates[1])
        try await world.withdraw(updates[2])
        try await world.sweep()
        #expect(try await world.poll().map(\.update).contains(updates[0]))
    }

    @Test func `an earlier change that arrives later does not replace the changes before it`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#))
        let removal = try await publish(
            world, #"{"action":"remove","object":"a"}"#, audience: "region == 'south'")
        let refresh = try await publish(world, Self.refresh("a"))
        try await world.ask(nil, #""max":0"#)
        let copies = try await world.poll(nil, UpdateWorld.parameters(#""region":"south""#, revision: "2"))
        #expect(Set(copies.map(\.update)) == [removal, refresh])
    }

    @Test func `content that was coalesced and expired is missed when its replacement fails`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        _ = try await publish(world, Self.roots, #","ttl":60"#)
        try await world.ask(nil, #""max":0"#)
        let second = try await publish(world, Self.roots)
        try await world.ask(nil, #""max":0"#)
        world.advance(seconds: 61)
        try await world.sweep()
        #expect(try await resync(world) == nil, "the second replaces it")
        try await world.withdraw(second)
        try await world.sweep()
        _ = try await world.poll()
        #expect(try await resyncs(world) == ["waiting": 1])
    }

    @Test func `content that a device could not process before it expired is made up for`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        _ = try await publish(world, nil, #","ttl":60"#)
        let copy = try #require(try await world.poll().first)
        try await world.ask()
        world.advance(seconds: 61)
        try await world.sweep()
        try await world.ask()
        #expect(try await resync(world) == nil, "it may be done")
        try await world.ask(nil, UpdateWorld.result(copy, "failed"))
        #expect(try await world.poll().count <= 1)
        #expect(try await resyncs(world) == ["waiting": 1])
    }

    @Test func `content that becomes a device's and expires before its inbox had room is made up for`() async throws {
        let world = try await UpdateWorld(store: stores.open(.init(inbox: InboxLimits(envelopes: 2))))
        try await world.ask(nil, UpdateWorld.parameters(#""region":"south""#))
        _ = try await publish(world, audience: "region == 'north'", #","ttl":60"#)
        for _ in 0..<2 { try await world.publish("popup", #"{"style":"failure","title":"t"}"#) }
        try await world.ask(nil, #""max":0"#)
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#, revision: "2") + #","max":0"#)
        world.advance(seconds: 61)
        try await world.sweep()
        for _ in 0..<3 { try await world.ask() }
        #expect(try await resync(world) != nil)
    }

    @Test func `a device that leaves both audiences receives neither the coalesced nor the replacing content`() async throws
    {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#))
        let first = try await publish(world, Self.roots, audience: "region == 'north'")
        try await world.ask(nil, #""max":0"#)
        let second = try await publish(world, Self.roots, audience: "region == 'north'")
        try await world.ask(nil, #""max":0"#)
        #expect(try await world.counts(first) == ["superseded": 1])
        #expect(try await world.poll(nil, UpdateWorld.parameters(#""region":"south""#, revision: "2")).isEmpty)
        for update in [first, second] { #expect(try await world.counts(update) == [:]) }
        try await world.sweep()
        #expect(try await world.poll().isEmpty)
        // When it is back, the later one replaces the earlier one again.
        #expect(
            try await world.poll(nil, UpdateWorld.parameters(#""region":"north""#, revision: "3")).map(\.update) == [second])
    }

    @Test func `content that found no room and expired is made up for`() async throws {
        let store = try await stores.open(.init(inbox: InboxLimits(envelopes: 2)))
        let world = try await UpdateWorld(store: store)
        try await world.ask()
        for _ in 0..<2 { try await world.publish("popup", #"{"style":"failure","title":"t"}"#) }
        // One is live, and does not fit; a later one, that is for others, expires first.
        _ = try await publish(world, nil, #","ttl":600"#)
        _ = try await publish(world, nil, audience: "region == 'none'", #","ttl":60"#)
        try await world.ask(nil, #""max":0"#)
        world.advance(seconds: 100)
        try await world.sweep()
        try await world.ask(nil, #""max":0"#)
        world.advance(seconds: 600)
        try await world.sweep()
        for _ in 0..<3 { try await world.ask() }
        #expect(try await resync(world) != nil)
    }

    @Test func `content that replaces others keeps their order key`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let key = #","orderKey":"k""#
        let first = try await publish(world, Self.refresh("a"), key)
        try await world.ask(nil, #""max":0"#)
        let second = try await publish(world, #"{"action":"remove","object":"a"}"#, key)
        #expect(try await world.poll().map(\.update) == [second], "its predecessor has ended")
        #expect(try await world.counts(first) == ["superseded": 1])
    }

    // MARK: Fetching everything

    @Test func `beyond 500 updates one that asks to fetch everything replaces all content, and nothing else`() async throws {
        let world = try await UpdateWorld()
        var content: [String] = []
        let popup = try await world.publish("popup", #"{"style":"failure","title":"t"}"#)
        for _ in 0...UpdateDelivery.mostContent { content.append(try await world.publish()) }
        let copies = try await world.poll(nil, #""max":500"#)
        let resync = try #require(try await resync(world))
        #expect(copies.map(\.update) == [popup, resync])
        #expect(try await world.counts(content[0]) == ["superseded": 1])
        #expect(try await world.counts(content[500]) == ["superseded": 1])
        // The device has it: new content is delivered by itself, and again after another order.
        let later = try await publish(world)
        #expect(try await world.poll(nil, UpdateWorld.result(copies[1])).map(\.update) == [later])
        #expect(try await resyncs(world) == ["done": 1])
    }

    @Test func `500 wait one by one`() async throws {
        let world = try await UpdateWorld()
        for _ in 0..<UpdateDelivery.mostContent { _ = try await world.publish() }
        #expect(try await world.poll(nil, #""max":500"#).count == UpdateDelivery.mostContent)
        #expect(try await resync(world) == nil)
    }

    @Test func `content that expired before a device had it is made up for, once`() async throws {
        let world = try await UpdateWorld()
        let north = UpdateWorld.parameters(#""region":"north""#)
        let other = try await world.device()
        for device in [world.first, other] { try await world.ask(device, north) }
        // Not delivered, and delivered but not received.
        let update = try await publish(world, audience: "region == 'north'", #","ttl":60"#)
        try await world.ask(other, #""max":0"#)
        #expect(try await world.counts(update) == ["waiting": 1])
        world.advance(seconds: 61)
        try await world.sweep()
        for device in [world.first, other] {
            let copies = try await world.poll(device)
            #expect(copies.map(\.update) == [try await resync(world)])
            #expect(try await world.poll(device, UpdateWorld.result(try #require(copies.first))).isEmpty)
        }
        #expect(try await resyncs(world) == ["done": 2])
        #expect(try await world.poll(try await world.device()).isEmpty, "a new device has missed nothing")
    }

    @Test func `expired content that was for others, or was received, does not concern a device`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""region":"south""#))
        _ = try await publish(world, audience: "region == 'north'", #","ttl":60"#)
        let received = try await publish(world, nil, #","ttl":60"#)
        let popup = try await world.publish("popup", #"{"style":"failure","title":"t"}"#, #","ttl":60"#)
        #expect(try await world.poll().first?.update == received)
        try await world.ask()
        world.advance(seconds: 61)
        try await world.sweep()
        #expect(try await world.poll().map(\.update) == [popup], "which is taken back")
        #expect(try await world.poll().isEmpty)
        #expect(try await resync(world) == nil)
        _ = try await publish(world, audience: "region == 'north'", #","ttl":60"#)
        world.advance(seconds: 61)
        try await world.sweep()
        #expect(try await world.poll().isEmpty, "not before, nor after it came")
        #expect(try await resync(world) == nil)
        // Nor is withdrawn content.
        let withdrawn = try await publish(world)
        try await world.withdraw(withdrawn)
        #expect(try await world.poll().isEmpty)
        #expect(try await resync(world) == nil)
    }

    @Test func `unknown content counts as missed`() async throws {
        let world = try await UpdateWorld(limits: .init(ended: 1))
        try await world.ask()
        for audience in [nil, nil, "region == 'north'"] { _ = try await publish(world, audience: audience, #","ttl":60"#) }
        world.advance(seconds: 61)
        try await world.sweep()
        try await world.sweep()
        #expect(try await world.poll().count == 1)
        #expect(try await resyncs(world) == ["waiting": 1])
    }

    @Test func `a device that processes no content does not receive it`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(kinds: ["popup"])
        _ = try await publish(world, nil, #","ttl":60"#)
        world.advance(seconds: 61)
        try await world.sweep()
        #expect(try await world.poll(kinds: ["popup"]).isEmpty)
        #expect(try await resync(world) == nil)
        #expect(try await world.poll(kinds: ["content"]).count == 1, "it may have been missed")
    }

    @Test func `a poll with an old position, as after a restore of the device, delivers one resync`() async throws {
        let world = try await UpdateWorld()
        let done = try await publish(world)
        var copies = try await world.poll()
        let early = world.first.position.withLock { $0 }
        try await world.ask(nil, UpdateWorld.result(try #require(copies.first)))
        let open = try await publish(world)
        #expect(try await world.poll().map(\.update) == [open])
        try await world.ask()
        // A lost answer is no restored backup.
        let last = world.first.position.withLock { $0 }
        try await world.ask(position: last)
        #expect(try await world.poll(position: last).isEmpty)
        #expect(try await resync(world) == nil)

        copies = try await world.poll(position: early)
        #expect(Set(copies.map(\.update)) == [open, try #require(try await resync(world))])
        #expect(try await world.counts(done) == ["done": 1])
        try await world.ask()
        #expect(try await world.poll().isEmpty, "once")
        // A device that lost everything begins anew, and receives its unfinished updates.
        #expect(Set(try await world.poll(position: .some(nil)).map(\.update)).contains(open))
        #expect(try await resyncs(world) == ["waiting": 1])
    }

    @Test func `a position counts even if its updates are confirmed already`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let early = world.first.position.withLock { $0 }
        _ = try await publish(world)
        let copy = try #require(try await world.poll().first)
        let answer = try await world.routes.request(
            .post, "/v1/inbox/results", key: world.first.credential,
            #"{"results":[{"version":"\#(copy.version)","result":"acknowledged"}]}"#)
        #expect(answer.status == 200 || answer.status == 204, "\(String(decoding: answer.body, as: UTF8.self))")
        await world.routes.domain.runtime.inbox.flush()
        #expect(try await world.poll().isEmpty)
        #expect(try await world.poll(position: early).count == 2, "it was brought back")
    }

    @Test func `the order to fetch everything is no update of the app's log`() async throws {
        let world = try await UpdateWorld(limits: .init(live: 2))
        try await world.ask()
        _ = try await publish(world, nil, #","ttl":60"#)
        world.advance(seconds: 61)
        try await world.sweep()
        #expect(try await world.poll().count == 1)
        let id = try #require(try await resync(world))
        let answer = try await world.routes.request(.delete, "/v1/updates/\(id)", key: world.sender)
        #expect(answer.status == 409 && answer.code == "update_final")
        for _ in 0..<2 { _ = try await publish(world) }
        #expect(try await world.poll(try await world.device()).count == 2, "no other device is notified")
    }

    @Test func `a device that moves to and fro keeps no more than a number of entries`() async throws {
        let world = try await UpdateWorld()
        let update = try await publish(world, audience: "region == 'north'", #","mode":"standing""#)
        for turn in 0..<(Completion.mostEntries + 5) {
            let copies = try await world.poll(nil, UpdateWorld.parameters(#""region":"north""#, revision: "n\(turn)"))
            try await world.ask(
                nil,
                UpdateWorld.result(try #require(copies.last { $0.attempt > 0 })) + ","
                    + UpdateWorld.parameters(#""region":"south""#, revision: "s\(turn)"))
        }
        #expect(try await world.counts(update) == ["done": Completion.mostEntries])
    }

    // MARK: Results

    @Test func `a failure that is reported again because its answer was lost is one failure`() async throws {
        let world = try await UpdateWorld()
        let update = try await publish(world)
        let first = try #require(try await world.poll().first)
        func say(_ attempt: Int) async throws -> JSONValue? {
            try await world.ask(nil, UpdateWorld.result(first, "failed", #","attempt":\#(attempt)"#) + #","max":0"#).json?[
                "ignored"]
        }
        #expect(try await say(1) == nil)
        #expect(try await say(1) != nil)
        #expect(try await failures(world, update) == 1)
        let second = try #require(try await world.poll().first)
        #expect(second.attempt == 2)
        #expect(try await say(1) != nil)
        #expect(try await say(2) == nil)
        #expect(try await say(2) != nil, "it waits for another delivery")
        #expect(try await failures(world, update) == 2)
        try await world.ask(nil, UpdateWorld.result(first, "done", #","attempt":1"#))
        #expect(try await world.counts(update) == ["done": 1], "a completed update stays completed")
        try await world.ask(nil, UpdateWorld.result(first, "done", #","attempt":0"#), expecting: 400)
    }

    private func failures(_ world: UpdateWorld, _ update: String) async throws -> Int {
        let answer = try await world.routes.request(.get, "/v1/updates/\(update)/devices", key: world.sender)
        guard case .array(let devices)? = answer.json?["devices"], case .integer(let count)? = devices.first?["failures"]
        else { return -1 }
        return count
    }

    // MARK: The audit

    @Test func `the audit shows the actions and their callers, without contents`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(
            "popup", #"{"style":"failure","title":"secret"}"#, audience: "region == 'secret'")
        let second = try await publish(world, nil, #","supersedes":"\#(update)""#)
        try await world.withdraw(second)
        let third = try await publish(world)
        _ = try await world.routes.request(.post, "/v1/updates/\(third)/requeue", key: world.sender, #"{"nothing":1}"#)
        let path = "/v1/apps/com.example.app/audit"
        #expect(try await world.routes.request(.get, path, key: world.sender).status == 403)
        let answer = try await world.routes.request(.get, path, key: world.routes.admin)
        #expect(!String(decoding: answer.body, as: UTF8.self).contains("secret"))
        guard case .array(let entries)? = answer.json?["entries"] else { return #expect(Bool(false)) }
        #expect(
            entries.map { $0["action"] } == ["published", "withdrawn", "published", "published"].map { .string($0) })
        #expect(entries.map { $0["update"] } == [third, second, second, update].map { .string($0) })
        #expect(Set(entries.map { "\($0["key"] ?? .null)" }).count == 1)
        let page = try await world.routes.request(.get, path + "?limit=3", key: world.routes.admin)
        let rest = try await world.routes.request(.get, path + "?before=\(page["next"])", key: world.routes.admin)
        #expect(rest.json?["entries"] == .array([entries[3]]))
        _ = try await world.routes.request(
            .post, "/v1/updates/\(third)/requeue?app=com.example.app", key: world.routes.admin, "{}")
        let last = try await world.routes.request(.get, path + "?limit=1", key: world.routes.admin)
        guard case .array(let latest)? = last.json?["entries"] else { return #expect(Bool(false)) }
        #expect(latest[0]["action"] == .string("requeued") && latest[0]["count"] == .integer(0))
        #expect(latest[0]["key"] != entries[0]["key"])
    }

    @Test func `the audit is kept for a time, and up to a number for each app`() async throws {
        let world = try await UpdateWorld()
        for _ in 0..<5 { _ = try await publish(world) }
        let store = world.routes.store
        try await store.forgetAudit(before: Timestamp(milliseconds: 0), beyond: 3, limit: 10)
        #expect(try await stores.count(.auditEntries, in: store) == 4, "a hundredth at a time, one at the least")
        try await store.forgetAudit(before: Timestamp(milliseconds: 0), beyond: 4, limit: 10)
        #expect(try await stores.count(.auditEntries, in: store) == 4)
        world.advance(seconds: AuditEntry.keptSeconds + 3601)
        try await world.sweep()
        #expect(try await stores.count(.auditEntries, in: store) == 0)
    }

    // MARK: Load

    @Test func `devices must poll later while polls are slow`() {
        var pace = PollPace()
        for _ in 0..<100 { pace.note(seconds: 0.2) }
        #expect(pace.retryAfterSeconds == nil)
        for _ in 0..<200 { pace.note(seconds: 0.5) }
        #expect((15...20).contains(pace.retryAfterSeconds ?? 0))
        for _ in 0..<500 { pace.note(seconds: 60) }
        #expect(pace.retryAfterSeconds == 300)
        for _ in 0..<1000 { pace.note(seconds: 0) }
        #expect(pace.retryAfterSeconds == nil)
    }

    @Test func `a poll returns a time to wait`() async throws {
        let ticks = TickCount()
        let world = try await UpdateWorld(ticks: TickSource { ticks.next() })
        #expect(try await world.ask().json?["retryAfter"] == nil)
        ticks.step.store(60_000_000_000, ordering: .relaxed)
        for _ in 0..<5 { try await world.ask() }
        guard case .integer(let seconds)? = try await world.ask().json?["retryAfter"] else { return #expect(Bool(false)) }
        #expect(seconds > 9)
    }

    private final class TickCount: Sendable {
        let step = Atomic<Int64>(0)
        private let now = Atomic<Int64>(0)
        func next() -> Int64 { now.add(step.load(ordering: .relaxed), ordering: .relaxed).newValue }
    }
}
