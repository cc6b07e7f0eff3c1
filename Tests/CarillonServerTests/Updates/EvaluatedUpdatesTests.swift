import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Servers that are restored from a backup with their live updates paused.
@Suite(.timeLimit(.minutes(5)))
struct EvaluatedUpdatesTests {
    private func restored(_ world: UpdateWorld, from backup: StoreCopy, holdsUpdates: Bool = true) async throws -> (
        world: UpdateWorld, updates: LiveUpdateCount
    ) {
        try await stores.close(world.routes.store)
        let restored = try await stores.restore(backup, holdsUpdates: holdsUpdates, at: world.now, StoreSettings())
        return (try await UpdateWorld(world, goingOnWith: restored.store), restored.updates)
    }

    private func backedUp(_ world: UpdateWorld) async throws -> StoreCopy {
        try await stores.backUp(world.routes.store)
    }

    private func resume(_ update: String, in world: UpdateWorld) async throws -> RouteFixture.Answer {
        try await world.routes.request(.post, "/v1/updates/\(update)/resume", key: world.sender)
    }

    private func isPaused(_ update: String, in world: UpdateWorld) async throws -> Bool {
        let shown = try await world.routes.request(.get, "/v1/updates/\(update)", key: world.sender)
        let list = try await world.routes.request(.get, "/v1/updates", key: world.sender)
        guard case .array(let updates)? = list.json?["updates"],
            let listed = updates.first(where: { $0["id"] == .string(update) })
        else { return false }
        #expect(listed["paused"] == shown.json?["paused"])
        return shown.json?["paused"] == .bool(true)
    }

    /// A world on disk with an update in the first device's inbox, one that it received without a report, and one for others.
    private func scenario() async throws -> (world: UpdateWorld, received: String, waiting: String, other: String) {
        let world = try await UpdateWorld(store: stores.openKept())
        let received = try await world.publish("definitions", "{}")
        _ = try await world.poll()
        try await world.ask()
        let waiting = try await world.publish("definitions", "{}", #","ttl":172800"#)
        try await world.ask(nil, #""max":0"#)
        let other = try await world.publish("definitions", "{}", audience: "region == 'north'")
        return (world, received, waiting, other)
    }

    @Test func `a withdrawn update is not delivered by a server that was restored with paused updates`() async throws {
        var (world, received, waiting, other) = try await scenario()
        let backup = try await backedUp(world)
        try await world.withdraw(waiting)
        let count: LiveUpdateCount
        (world, count) = try await restored(world, from: backup)
        #expect(count == LiveUpdateCount(live: 3, paused: 3))
        #expect(try await listed("paused", in: world) == [other, waiting, received])
        #expect(try await listed("live", in: world) == [other, waiting, received])
        let late = try await world.device()
        for day in 0...1 {
            #expect(try await world.poll(late, UpdateWorld.parameters(#""region":"north""#, revision: "\(day)")).isEmpty)
            let copies = try await world.poll()
            #expect(copies.allSatisfy { $0.kind == "content" }, "\(copies)")
            let inbox = try await world.routes.request(.get, "/v1/inbox?carillon=5", key: world.first.credential)
            #expect(!String(decoding: inbox.body, as: UTF8.self).contains("definitions"))
            world.advance(seconds: 86_000)
            try await world.sweep()
        }
        for update in [received, waiting, other] { #expect(try await isPaused(update, in: world)) }
        // A paused update can be withdrawn, and ends with its time.
        try await world.withdraw(received)
        world.advance(seconds: 86_400)
        try await world.sweep()
        #expect(try await world.routes.request(.get, "/v1/updates/\(waiting)", key: world.sender)["status"] == "expired")
        #expect(try await resume(waiting, in: world).code == "update_final")
        #expect(try await resume(received, in: world).code == "update_final")
        #expect(try await !isPaused(waiting, in: world))
    }

    @Test func `a resumed update continues where it was paused`() async throws {
        var (world, received, waiting, other) = try await scenario()
        let backup = try await backedUp(world)
        (world, _) = try await restored(world, from: backup)
        let late = try await world.device()
        #expect(try await world.poll(late, UpdateWorld.parameters(#""region":"north""#)).isEmpty)
        try await world.ask()
        for update in [received, waiting, other] {
            let answer = try await resume(update, in: world)
            #expect(answer.status == 200 && answer["id"] == update && answer.json?["paused"] == nil)
            #expect(try await !isPaused(update, in: world))
        }
        #expect(try await listed("paused", in: world).isEmpty)
        #expect(try await world.poll(late).map(\.update) == [received, waiting, other])
        try await world.sweep()
        let copies = try await world.poll().filter { $0.kind == "definitions" }
        #expect(copies.map(\.update).sorted() == [received, waiting].sorted())
        // Once more it changes nothing.
        #expect(try await resume(waiting, in: world).status == 200)
        let audit = try await world.routes.request(.get, "/v1/apps/com.example.app/audit", key: world.routes.admin)
        guard case .array(let entries)? = audit.json?["entries"] else { return #expect(Bool(false)) }
        #expect(entries.filter { $0["action"] == .string("resumed") }.count == 3)
    }

    @Test func `an update that is published after a restore is delivered, beside the paused ones`() async throws {
        var (world, _, _, _) = try await scenario()
        let backup = try await backedUp(world)
        (world, _) = try await restored(world, from: backup)
        let late = try await world.device()
        let new = try await world.publish("definitions", "{}")
        let newer = try await world.publish("definitions", "{}")
        #expect(try await world.poll(late).map(\.update) == [new, newer])
    }

    @Test func `without a pause, live updates continue at once`() async throws {
        var (world, _, waiting, _) = try await scenario()
        let backup = try await backedUp(world)
        try await world.withdraw(waiting)
        let count: LiveUpdateCount
        (world, count) = try await restored(world, from: backup, holdsUpdates: false)
        #expect(count == LiveUpdateCount(live: 3))
        #expect(try await listed("paused", in: world).isEmpty)
        #expect(try await !isPaused(waiting, in: world))
        #expect(try await world.poll().map(\.update).contains(waiting))
    }

    @Test func `due deliveries of a paused update are not searched, and are due again when it is resumed`() async throws {
        var (world, received, _, _) = try await scenario()
        (world, _) = try await restored(world, from: try await backedUp(world))
        let store = world.routes.store
        let end = world.now.adding(seconds: 1_000_000)
        #expect(try await stores.dueTimes(in: store).allSatisfy { $0 >= end })
        #expect(try await stores.dueTimes(in: store).count == 2)
        #expect(try await resume(received, in: world).status == 200)
        #expect(try await stores.dueTimes(in: store).filter { $0 < end }.count == 1)
    }

    @Test func `a paused update with many completions leaves all inboxes`() async throws {
        var world = try await UpdateWorld(store: stores.openKept())
        let devices = try await withThrowingTaskGroup(of: UpdateWorld.Device.self) { group in
            for _ in 0..<600 { group.addTask { [world] in try await world.device() } }
            return try await group.reduce(into: [UpdateWorld.Device]()) { $0.append($1) }
        }
        let update = try await world.publish("definitions", "{}")
        for device in devices { try await world.ask(device, #""max":0"#) }
        #expect(try await world.counts(update)["waiting"] == 600)
        (world, _) = try await restored(world, from: try await backedUp(world))
        #expect(try await stores.count(.envelopes, in: world.routes.store) == 0)
        #expect(try await resume(update, in: world).status == 200)
        world.advance(seconds: 1)
        try await world.sweep()
        #expect(try await stores.count(.envelopes, in: world.routes.store) == 600)
    }

    @Test func `an envelope of which the device had reported is taken out as well`() async throws {
        var (world, received, _, _) = try await scenario()
        let first = try #require(try await stores.updates(in: world.routes.store).first)
        // The device has it, and a report on it was written while the envelope was not taken out yet.
        world.advance(seconds: 90_000)
        try await world.sweep()
        try await stores.report(first, in: world.routes.store)
        (world, _) = try await restored(world, from: try await backedUp(world))
        #expect(try await !world.poll().contains { $0.update == received })
    }

    @Test(arguments: [true, false])
    func `content that was missed while it was paused is made up for`(expiresPaused: Bool) async throws {
        var world = try await UpdateWorld(store: stores.openKept())
        _ = try await world.poll()
        // The device is away: the entries in its inbox when the backup is made count as fetched with everything else.
        world.advance(seconds: 6)
        try await world.sweep()
        #expect(world.routes.domain.updateDelivery.rememberedDevices == 0)
        let paused = try await world.publish("content", nil, #","ttl":7200"#)
        (world, _) = try await restored(world, from: try await backedUp(world))
        // Restored devices fetch everything once.
        for _ in 0..<3 {
            let copies = try await world.poll()
            for copy in copies { _ = try await world.poll(nil, UpdateWorld.result(copy)) }
        }
        let later = try await world.publish("content", nil, #","ttl":900000"#)
        let copies = try await world.poll()
        #expect(copies.map(\.update) == [later])
        for copy in copies { _ = try await world.poll(nil, UpdateWorld.result(copy)) }
        if !expiresPaused { #expect(try await resume(paused, in: world).status == 200) }
        world.advance(seconds: 7201)
        try await world.sweep()
        let resyncs = try await world.poll()
        #expect(resyncs.count == 1 && resyncs.first?.kind == "content" && resyncs.first?.update != later, "\(resyncs)")
    }

    @Test func `an update that ended is not resumed, and one that was resumed is reported again`() async throws {
        var (world, _, waiting, other) = try await scenario()
        (world, _) = try await restored(world, from: try await backedUp(world))
        try await world.withdraw(waiting)
        #expect(try await resume(waiting, in: world).code == "update_final")
        for _ in 0..<2 {
            let answer = try await resume(other, in: world)
            #expect(answer.status == 200 && answer.json?["paused"] == nil)
        }
    }

    private func listed(_ status: String, in world: UpdateWorld) async throws -> [String] {
        let list = try await world.routes.request(.get, "/v1/updates?status=\(status)", key: world.sender)
        guard case .array(let updates)? = list.json?["updates"] else { return ["\(list.status)"] }
        return updates.compactMap { if case .string(let id)? = $0["id"] { id } else { nil } }
    }

    @Test func `an update of another app cannot be resumed`() async throws {
        let (world, _, waiting, _) = try await scenario()
        _ = try await world.routes.request(.post, "/v1/apps", key: world.routes.admin, #"{"id":"com.example.other"}"#)
        let answer = try await world.routes.request(
            .post, "/v1/updates/\(waiting)/resume?app=com.example.other", key: world.routes.admin)
        #expect(answer.code == "update_unknown")
    }
}
