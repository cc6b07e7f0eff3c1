import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The work of a home's features when a shard moves.
@Suite(.timeLimit(.minutes(5)))
struct MovedFeaturesTests {
    // MARK: Devices

    @Test func `a home without shards creates no device`() async throws {
        let world = try await TwoHomes(clock: nil)
        let (former, next) = (world.domains[0], world.domains[1])
        let gate = try #require(former.runtime.gate)
        for shard in gate.openShards.shards {
            #expect(await gate.close(shard, atMost: .zero))
            gate.remove(shard)
        }
        await #expect(throws: HomeFault.unreachable) { try await former.devices.register(app: world.app.id) }
        let device = try await next.devices.register(app: world.app.id).device
        #expect(next.runtime.has(device.serial))
    }

    // MARK: Items

    /// Returns an item of a home, with its shard.
    private func item(
        at place: Int, in world: TwoHomes, outside excluded: Shard? = nil
    ) throws -> (key: ItemKey, shard: Shard) {
        let key = try world.item(at: place, outside: excluded)
        return (key, Shard(of: key.app, item: key.name.text))
    }

    private func publish(_ price: Double, to key: ItemKey, at engine: ItemEngine) async throws -> Int64 {
        try await engine.publish(ItemUpdate(["price": ItemValue(.double(price))]), to: key, mode: .merge).version
    }

    @Test func `an item that moves is in the memory of its new home alone, and keeps its value`() async throws {
        let world = try await TwoHomes(clock: nil)
        let (key, shard) = try item(at: 0, in: world)
        let (former, next) = (world.domains[0].itemEngine, world.domains[1].itemEngine)
        #expect(try await publish(1, to: key, at: former) == 1)
        await #expect(throws: StoreFault.self) { try await publish(2, to: key, at: next) }
        try await world.move(shard)
        let before = (await former.population.items, await next.population.items)
        #expect(before == (0, 0))
        await #expect(throws: StoreFault.self) { try await publish(2, to: key, at: former) }
        #expect(try await publish(2, to: key, at: next) == 2)
        try await world.move(shard)
        #expect(try await publish(3, to: key, at: former) == 3)
        let after = (await former.population.items, await next.population.items)
        #expect(after == (1, 0))
    }

    @Test func `items of other shards stay in memory`() async throws {
        let world = try await TwoHomes(clock: nil)
        let (key, shard) = try item(at: 0, in: world)
        let engine = world.domains[0].itemEngine
        #expect(try await publish(1, to: key, at: engine) == 1)
        let other = Shard(number: (shard.number + 1) % UInt16(Shard.count))
        #expect(await engine.release(other, atMost: .seconds(10)))
        #expect(await engine.population.items == 1)
    }

    @Test func `a shard whose item has work under way is not released`() async throws {
        let world = try await TwoHomes(clock: nil)
        let (key, shard) = try item(at: 0, in: world)
        let engine = world.domains[0].itemEngine
        #expect(try await publish(1, to: key, at: engine) == 1)
        let gate = CommitGate(world.store)
        async let published = publish(2, to: key, at: engine)
        try await gate.reached()
        #expect(await engine.release(shard, atMost: .milliseconds(20)) == false)
        #expect(await engine.population.items == 1)
        gate.open()
        #expect(try await published == 2)
        #expect(await engine.release(shard, atMost: .seconds(10)))
        #expect(await engine.population.items == 0)
        #expect(try await publish(3, to: key, at: engine) == 3)
    }

    /// A store after the kill of a process whose engine did not evaluate the last subscription.
    private func killed() async throws -> any Store {
        let store = try await stores.openKept()
        let world = try await EngineWorld(store)
        try await world.publish(20)
        _ = try await world.titles()
        let snapshots = Snapshots(of: store)
        snapshots.begin()
        _ = try await world.subscribe("price > 15.0")
        snapshots.end()
        _ = try await world.titles()
        try await stores.close(store)
        return try await stores.openCopy(try #require(snapshots.taken.first).copy)
    }

    @Test func `subscriptions of a shard that was taken are evaluated if they never fired, once`() async throws {
        let world = try await EngineWorld(try await killed())
        let engine = world.domain.itemEngine
        let shard = Shard(of: world.item.app, item: world.item.name.text)
        await engine.took(Shard(number: (shard.number + 1) % UInt16(Shard.count)))
        try await engine.evaluateTaken()
        #expect(try await world.titles() == [])
        await engine.took(shard)
        try await stores.makeUnreadable(.watchedItems, in: world.store)
        await #expect(throws: (any Error).self) { try await engine.evaluateTaken() }
        try await stores.makeReadable(.watchedItems, in: world.store)
        try await engine.evaluateTaken()
        #expect(try await world.titles() == ["20.0"])
        #expect(await engine.population.items == 1)
        try await engine.evaluateTaken()
        #expect(try await world.titles() == ["20.0"])
    }

    /// An app that allows each subscription after some work.
    private struct SlowApproval: SubscriptionApproval {
        let work: @Sendable () async throws -> Void

        func hasHook(_ app: AppSerial) async throws -> Bool { true }

        func ask(_ question: SubscriptionQuestion, of app: AppID, serial: AppSerial) async throws { try await work() }
    }

    @Test func `a subscription watches an item that moves while the app approves the subscription`() async throws {
        let world = try await TwoHomes(clock: nil)
        let phone = try await world.phone()
        let place = world.place(of: phone.shard)
        let (key, shard) = try item(at: place, in: world, outside: phone.shard)
        let (domain, next) = (world.domains[place], world.domains[1 - place].itemEngine)
        let rule = JSONValue.object([
            .init(name: "pattern", value: .string("*")), .init(name: "open", value: .bool(true)),
        ])
        let rules = try ItemRules(.object([.init(name: "items", value: .array([rule]))]))
        try await domain.items.setRules(rules, of: phone.device.app)
        let approval = SlowApproval { [self] in
            try await world.move(shard)
            _ = try await publish(1, to: key, at: next)
        }
        let registrar = SubscriptionRegistrar(
            store: domain.runtime.store, engine: domain.itemEngine, items: domain.items, home: domain.runtime,
            others: domain.others, rateLimits: domain.shared.rateLimits, approvalHooks: approval,
            payloadSize: { PushRendering.payloadSize(of: $0) }, time: domain.time, random: .system)
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("${price}"))]))
        let definition = Subscription.Definition(
            items: [key.name], fields: ["price"], trigger: "price > 10.0", format: format)
        _ = try await registrar.put(definition, of: phone.device, from: nil)
        #expect(await next.population.watches == 1)
    }

    // MARK: Devices

    @Test func `the channels of a device that moved are read again`() async throws {
        let world = try await TwoHomes(clock: nil)
        let phone = try await world.phone()
        let former = world.domain(of: phone.device)
        _ = try await world.send(to: phone)
        #expect(former.directory.remembered(phone.channel.serial) != nil)
        try await world.move(phone.shard)
        #expect(former.directory.remembered(phone.channel.serial) == nil)
        _ = try await world.send(to: phone)
        _ = try await world.domain(of: phone.device).channels.unregister(phone.channel.id, device: phone.device.serial)
        try await world.move(phone.shard)
        #expect(try await former.directory.channel(phone.channel.serial) == nil)
    }

    @Test func `a shard stays while it is not written which of its devices were seen`() async throws {
        let world = try await TwoHomes(clock: nil)
        let phone = try await world.phone()
        let former = world.domain(of: phone.device)
        var device = phone.device
        // It was not seen for long.
        device.seenAt = Timestamp(milliseconds: 0)
        former.devices.sawRegistered(device)
        stores.refuseChanges(of: world.store, with: StoreFault(.full, "no"))
        #expect(try await world.tryMove(phone.shard) == .busy)
        stores.refuseChanges(of: world.store, with: nil)
        #expect(world.domain(of: phone.device) === former)
        _ = try await world.send(to: phone)
        #expect(try await world.tryMove(phone.shard) == .moved)
    }

    // MARK: Updates

    @Test func `the first update of an app reaches a connected device that polled at its former home`() async throws {
        let world = try await TwoHomes(clock: nil)
        let phone = try await world.phone()
        let word = UpdateDelivery.PollReport(
            profile: "main", kinds: [UpdateKind.definitions.name], parameters: nil, results: [], receivedTo: nil,
            offersAgain: false, needsResync: false)
        let former = world.domain(of: phone.device).updateDelivery
        let binding = try await former.binding(of: phone.device, profile: word.profile)
        _ = try await former.take(word, from: phone.device, binding)
        try await world.move(phone.shard)
        let domain = world.domain(of: phone.device)
        await domain.updateDelivery.connected(phone.device)
        let definition = Update.Definition(
            kind: .definitions, payload: Array("{}".utf8), audience: nil, mode: .once, ttlSeconds: 3600, orderKey: nil,
            wakes: false, supersedes: nil)
        _ = try await domain.updates.publish(definition, of: phone.device.app, by: KeyID(1))
        try await eventually {
            let now = domain.time.now()
            return try await world.store.waiting(
                device: phone.device.serial, after: 0, limit: 9, bytes: 1 << 20, at: now)?.count == 1
        }
    }
}
