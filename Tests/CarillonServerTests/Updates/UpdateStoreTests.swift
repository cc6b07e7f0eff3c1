import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// The refusals of the store, in the state before another event.
struct UpdateStoreTests {
    private func present(_ world: UpdateWorld) async throws -> UpdateBinding {
        let device = try await world.routes.domain.devices.find(try #require(DeviceID(world.first.id)))
        return try #require(try await world.routes.store.presentBinding(of: device.serial))
    }

    private func update(_ world: UpdateWorld, _ rest: String = "") async throws -> Update {
        world.advance(seconds: 10)
        try await world.sweep()
        let id = try #require(UpdateID(try await world.publish("content", nil, rest)))
        return try #require(try await world.routes.store.update(id, of: AppSerial(1)))
    }

    /// Whether it is stored in the inbox, offered for the binding at a revision.
    private func offer(
        _ update: Update, to binding: UpdateBinding, revision: Int64, isAgain: Bool = false, attempt: Int = 1,
        in world: UpdateWorld
    ) async -> Bool {
        let key = CompletionKey(update: update.serial, binding: binding.serial, entry: 1)
        let offer = UpdateOffer(
            key: key, revision: revision, isAgain: isAgain, attempt: attempt, orderKey: nil, at: world.now)
        let delivered = await world.routes.domain.runtime.inbox.deliver(
            to: binding.device, .kept, rules: AppendRules(topic: key.topic, effects: [.updateOffered(offer)])
        ) { id in
            Envelope(
                id: id, device: binding.device, app: update.app, origin: update.origin,
                kind: .update(.init(body: update.body, shared: update.content, entry: 1, attempt: attempt)),
                acceptedAt: world.now, expiresAt: world.now.adding(seconds: 1000))
        }
        return delivered.isStored
    }

    @Test func `an update that matched a device before a new report is not delivered`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let (binding, update) = (try await present(world), try await update(world))
        #expect(await !offer(update, to: binding, revision: binding.revision - 1, in: world))
        #expect(await offer(update, to: binding, revision: binding.revision, in: world))
        #expect(await !offer(update, to: binding, revision: binding.revision, in: world), "twice")
        #expect(
            await !offer(update, to: binding, revision: binding.revision, isAgain: true, attempt: 2, in: world),
            "it is not due")
    }

    @Test func `an expired update is not delivered, even before a sweep`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let (binding, update) = (try await present(world), try await update(world, #","ttl":60"#))
        world.advance(seconds: 60)
        #expect(await !offer(update, to: binding, revision: binding.revision, in: world))
    }

    @Test func `a due update is delivered again only to a device with the same report`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let (binding, update) = (try await present(world), try await update(world))
        #expect(await offer(update, to: binding, revision: binding.revision, in: world))
        try await stores.makeReceivedDue(in: world.routes.store)
        func again(_ revision: Int64) async -> Bool {
            await offer(update, to: binding, revision: revision, isAgain: true, attempt: 2, in: world)
        }
        #expect(await !again(binding.revision - 1))
        #expect(await again(binding.revision))
    }

    @Test func `an update that does not fit is deferred for the device in its state without the update`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let (binding, update) = (try await present(world), try await update(world))
        #expect(await offer(update, to: binding, revision: binding.revision, in: world))
        try await stores.setDueTimes(Timestamp(milliseconds: 1), in: world.routes.store)
        let key = CompletionKey(update: update.serial, binding: binding.serial, entry: 1)
        func due(_ revision: Int64) async throws -> [Int64] {
            try await world.routes.store.putOff(key, revision: revision, until: world.now)
            return try await stores.dueTimes(in: world.routes.store).map(\.milliseconds)
        }
        #expect(try await due(binding.revision - 1) == [1])
        #expect(try await due(binding.revision) == [world.now.milliseconds])
    }

    @Test func `the progress in a log counts only for the report with which it was evaluated`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let (binding, update) = (try await present(world), try await update(world))
        let store = world.routes.store
        func evaluated(_ revision: Int64) async throws -> Bool {
            try await store.evaluated(
                binding.serial, revision: revision, to: AudienceCursor(update.serial, rules: 1), isFull: false, adding: [],
                at: world.now)
        }
        #expect(try await !evaluated(binding.revision - 1))
        #expect(try await present(world).cursor == binding.cursor)
        #expect(try await evaluated(binding.revision))
        #expect(try await present(world).cursor.place == update.serial)
    }

    @Test func `of a binding that began anew nothing is released`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let update = try await world.publish()
        #expect(try await world.poll().map(\.update) == [update])
        let binding = try await present(world)
        #expect(try await world.routes.store.release(binding.serial, limit: 10, at: world.now) == nil)
        #expect(try await world.counts(update) == ["waiting": 1])
    }

    @Test func `data of one app does not exist for another`() async throws {
        let world = try await UpdateWorld()
        let routes = world.routes
        _ = try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"com.example.other"}"#)
        let other = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"sender","app":"com.example.other"}"#)["secret"]
        let body = #"{"kind":"definitions"}"#
        func publish(_ key: String, _ body: String) async throws -> RouteFixture.Answer {
            try await routes.request(
                .post, "/v1/updates", key: key, body,
                headers: [.init(name: try #require(.init("Idempotency-Key")), value: "once")])
        }
        let mine = try await publish(world.sender, body)
        #expect(mine.status == 201)
        #expect(try await publish(world.sender, body).status == 200)
        #expect(try await publish(world.sender, #"{"kind":"definitions","ttl":61}"#).code == "idempotency_key_reused")
        let theirs = try await publish(other, body)
        #expect(theirs.status == 201 && theirs["id"] != mine["id"])
        for (method, path) in [
            (.get, ""), (.get, "/devices"), (.delete, ""), (.post, "/requeue"),
        ] as [(HTTPRequest.Method, String)] {
            let answer = try await routes.request(
                method, "/v1/updates/\(mine["id"])\(path)", key: other, method == .post ? "{}" : nil)
            #expect(answer.code == "update_unknown", "\(method) \(path)")
        }
        let superseding = #"{"kind":"definitions","supersedes":"\#(mine["id"])"}"#
        #expect(try await routes.request(.post, "/v1/updates", key: other, superseding).code == "update_unknown")
        let audit = try await routes.request(.get, "/v1/apps/com.example.other/audit", key: routes.admin)
        guard case .array(let entries)? = audit.json?["entries"] else { return #expect(Bool(false)) }
        #expect(entries.map { $0["update"] } == [.string(theirs["id"])])
    }
}
