import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import Logging
import NIOPosix
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The engine over a store whose disk can fail, and that is opened again as after a kill.
@Suite(.timeLimit(.minutes(5)))
struct ItemEngineTests {
    @Test func `an update that a full disk refused is not true, and fires when it is published again`() async throws {
        let world = try await EngineWorld(stores.openKept())
        try await world.publish(1)
        for (policy, key) in [
            (SubscriptionMachine.Policy.once, "a"), (.everyCrossing, "b"), (.every(coolDownSeconds: 0), "c"),
            (.every(coolDownSeconds: 3600), "d"),
        ] { _ = try await world.subscribe("price > 10.0", policy, key: key) }
        try await stores.fillDisk(of: world.store)
        let pad = String(repeating: "x", count: 4000)
        let large =
            (0..<7).map { WrittenField("f\($0)", .string(pad)) } + [WrittenField("price", .number("11"))]
        await #expect(throws: StoreFault.self) {
            _ = try await world.domain.items.publish(large, to: world.item.name, of: world.device.app)
        }
        try await stores.freeDisk(of: world.store)
        #expect(try await world.titles().isEmpty, "nothing is delivered that is not on disk")
        let item = try await world.domain.items.item(world.item.name, of: world.device.app)
        #expect(item.version == 1 && item.state.fields["price"]?.text == "1.0")
        try await world.publish(12)
        #expect(try await world.titles() == ["12.0", "12.0", "12.0", "12.0"])
    }

    @Test func `all firings of an unwritten batch are found again`() async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        _ = try await world.subscribe("price == 11.0", key: "a")
        _ = try await world.subscribe("price == 12.0", key: "b")
        func publish() async -> [Result<ItemReceipt, any Error>] {
            await world.domain.items.publish(
                [11, 12].map { (item: world.item.name, fields: [WrittenField("price", .number("\($0)"))], place: nil) },
                of: world.device.app)
        }
        try await stores.refuse(.itemUpdate, in: world.store)
        for result in await publish() { #expect(throws: StoreFault.self) { try result.get() } }
        try await stores.allow(.itemUpdate, in: world.store)
        for result in await publish() { _ = try result.get() }
        #expect(try await world.titles() == ["11", "12"])
    }

    @Test func `a firing that could not be delivered delays later ones, and their publishers`() async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0", .everyCrossing)
        try await stores.refuse(.firstDelivery, in: world.store)
        let updates = [11, 5, 12].map { price in
            (item: world.item.name, fields: [WrittenField("price", .number("\(price)"))], place: ItemUpdate.Place?.none)
        }
        let results = await world.domain.items.publish(updates, of: world.device.app)
        #expect(results.allSatisfy { if case .success = $0 { true } else { false } })
        #expect(try await world.titles().isEmpty, "the second waits for the first")
        let refusal = await #expect(throws: Refusal.self) { try await world.publish(13) }
        #expect(refusal?.code == .itemBusy)
        try await world.domain.itemEngine.notifyRest()
        #expect(try await world.titles().isEmpty)
        try await stores.allow(.firstDelivery, in: world.store)
        try await world.domain.itemEngine.notifyRest()
        #expect(try await world.titles() == ["12"])
        try await world.publish(5)
        try await world.publish(14)
        #expect(try await world.titles() == ["14.0"])
    }

    @Test func `conditions of a failed update are evaluated with the next one`() async throws {
        let world = try await EngineWorld(stores.openKept())
        _ = try await world.subscribe("price > 10.0")
        _ = try await world.domain.devices.suspend(world.device)
        try await world.publish(11)
        _ = try await world.domain.devices.resume(world.device)
        #expect(try await world.titles().isEmpty)
        try await stores.fillDisk(of: world.store)
        let pad = String(repeating: "x", count: 4000)
        let large = (0..<7).map { WrittenField("f\($0)", .string(pad)) }
        await #expect(throws: StoreFault.self) {
            _ = try await world.domain.items.publish(large, to: world.item.name, of: world.device.app)
        }
        try await stores.freeDisk(of: world.store)
        try await world.publish(12)
        #expect(try await world.titles() == ["12.0"])
    }

    @Test func `a firing that was written and not delivered is delivered by the next process, once`() async throws {
        let kept = try await stores.openKept()
        var ids: [SubscriptionID] = []
        do {
            let world = try await EngineWorld(kept)
            try await world.publish(1)
            for number in 0..<5 { ids.append(try await world.subscribe("price > 10.0", key: "\(number)").id) }
            // The state after a kill behind the update's commit: the first two were delivered.
            var state = ItemState(.merge)
            state.apply(.init(["price": ItemValue(.double(11), digits: "11.5")], at: world.domain.time.now()))
            let targets = try await world.store.serials(of: world.device.serial).map {
                Firing.Target(subscription: $0, revision: 1)
            }
            let written = try await world.store.commitItem(
                ItemCommit(
                    key: world.item, item: StoredItem(state: state, version: 2),
                    firings: [Firing(item: world.item.name, app: world.item.app, state: state, targets: targets)]))
            try await world.store.advance(try #require(written?.first), to: 2, refused: [])
            try await stores.close(world.store)
        }
        let world = try await EngineWorld(stores.reopen(kept))
        try await world.domain.itemEngine.notifyRest()
        #expect(try await world.titles() == ["11.5", "11.5", "11.5"])
        try await world.domain.itemEngine.notifyRest()
        #expect(try await world.titles().count == 3)
        #expect(try await world.store.firingNumbers(of: world.item).isEmpty)
        // The two that the list did not deliver are still armed, and were true when the process began.
        try await world.publish(12)
        #expect(try await world.titles() == ["11.5", "11.5", "11.5", "11.5", "11.5"])
        try await stores.close(world.store)
    }

    @Test func `a past crossing is ignored by a process that starts later`() async throws {
        let kept = try await stores.openKept()
        do {
            let world = try await EngineWorld(kept)
            try await world.publish(1)
            _ = try await world.subscribe("price > 10.0", .everyCrossing)
            try await world.publish(11)
            #expect(try await world.titles() == ["11.0"])
            try await stores.close(world.store)
        }
        let world = try await EngineWorld(stores.reopen(kept))
        try await world.publish(12)
        #expect(try await world.titles() == ["11.0"])
        try await world.publish(9)
        try await world.publish(13)
        #expect(try await world.titles() == ["13.0"])
        try await stores.close(world.store)
    }

    // MARK: Restarts

    @Test func `a firing that was delivered at its creation is not delivered again by the next process`() async throws {
        let kept = try await stores.openKept()
        do {
            let world = try await EngineWorld(kept)
            try await world.publish(11)
            _ = try await world.subscribe("price > 10.0", .every(coolDownSeconds: 0), key: "a")
            #expect(try await world.titles() == ["11.0"])
            try await stores.close(world.store)
        }
        let world = try await EngineWorld(stores.reopen(kept))
        _ = try await world.subscribe("price > 100.0", key: "b")
        #expect(try await world.titles() == ["11.0"], "another update causes no evaluation of this one")
        try await stores.close(world.store)
    }

    @Test func `pending firings of an earlier process are delivered before new ones, and their publishers wait`()
        async throws
    {
        let kept = try await stores.openKept()
        do {
            let world = try await EngineWorld(kept)
            try await world.publish(1)
            for key in ["a", "b"] { _ = try await world.subscribe("price > 10.0", .everyCrossing, key: key) }
            try await world.leave(11, version: 2)
            try await stores.close(world.store)
        }
        let world = try await EngineWorld(stores.reopen(kept))
        let refusal = await #expect(throws: Refusal.self) { try await world.publish(5) }
        #expect(refusal?.code == .itemBusy)
        try await world.domain.itemEngine.notifyRest()
        #expect(try await world.titles() == ["11.0", "11.0"])
        try await world.publish(5)
        try await world.publish(12)
        #expect(try await world.titles() == ["12.0", "12.0"])
        try await stores.close(world.store)
    }

    @Test func `a damaged row delays no other`() async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0", .every(coolDownSeconds: 0))
        try await world.leave(11, version: 2)
        for number in try await world.store.firingNumbers(of: world.item) {
            try await stores.damageFiring(number, in: world.store)
        }
        try await world.leave(12, version: 3)
        try await world.domain.itemEngine.notifyRest()
        #expect(try await world.titles() == ["12.0"])
        #expect(try await world.store.firingNumbers(of: world.item).isEmpty)
    }

    // MARK: Times that meet

    @Test func `a crossing between the creation and the arming is found`() async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("${price}"))]))
        var random = SystemRandomNumberGenerator()
        let program = try world.domain.itemEngine.conditions.condition("price > 10.0", over: ["price": .dynamic])
        let put = try await world.store.putSubscription(
            SubscriptionRequest(
                proposed: .random(using: &random), device: world.device.serial,
                definition: .init(
                    items: [world.item.name], fields: ["price"], trigger: "price > 10.0", format: format,
                    policy: .everyCrossing),
                condition: WatchedCondition(
                    shape: program.shape.key, source: "price > 10.0", constants: ValueCoding.encode(program.constants)),
                limit: 10, found: [.init(item: world.item.name, version: 1, holds: false)]), at: world.domain.time.now())
        guard case .made(let subscription) = put else { throw StoreFault(.unavailable, "") }
        try await world.publish(11)
        #expect(try await world.titles().isEmpty)
        try await world.domain.itemEngine.follow([subscription.serial], looks: true)
        #expect(try await world.titles() == ["11.0"])
        try await world.publish(12)
        #expect(try await world.titles() == ["11.0"])
    }

    @Test func `a firing of one item makes none of another late`() async throws {
        let world = try await EngineWorld(stores.open())
        let other = try #require(ItemName("j"))
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("${item}"))]))
        let subscription = try await world.domain.subscriptions.put(
            .init(
                items: [world.item.name, other], fields: ["price"], trigger: "price > 10.0", format: format,
                policy: .everyCrossing), of: world.device, from: nil
        ).subscription
        var state = ItemState(.merge)
        state.apply(.init(["price": ItemValue(.double(11))], at: world.domain.time.now()))
        func commit(_ item: ItemName) async throws {
            _ = try await world.store.commitItem(
                ItemCommit(
                    key: ItemKey(app: world.device.app, name: item), item: StoredItem(state: state, version: 1),
                    firings: [
                        Firing(
                            item: item, app: world.device.app, state: state,
                            targets: [.init(subscription: subscription.serial, revision: 1)])
                    ]))
        }
        try await commit(world.item.name)
        try await commit(other)
        // The later one first.
        guard case .readable(let late)? = try await world.store.nextFiring(of: ItemKey(app: world.device.app, name: other))
        else { throw StoreFault(.unavailable, "") }
        #expect(await world.domain.itemEngine.notify(late))
        try await world.domain.itemEngine.notifyRest()
        let waiting = try await world.store.waiting(
            device: world.device.serial, after: 0, limit: 10, bytes: 1 << 20, at: world.domain.time.now())
        // It replaced the other one.
        #expect(waiting?.compactMap(\.fired?.item) == ["i"])
    }

    @Test func `a subscription that fired cools down, however often it matched meanwhile`() async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0", .every(coolDownSeconds: 3600))
        for _ in 0..<3 {
            let updates = (11..<31).map { price in
                (item: world.item.name, fields: [WrittenField("price", .number("\(price)"))], place: ItemUpdate.Place?.none)
            }
            _ = await world.domain.items.publish(updates, of: world.device.app)
            try await world.settle()
        }
        #expect(try await world.titles() == ["11"])
        try await world.leave(1, version: 100)
        #expect(try await world.store.firingNumbers(of: world.item) == [2], "nothing else was even written")
    }

    @Test func `a crossing that was delivered before a batch failed has not crossed again`() async throws {
        let world = try await EngineWorld(stores.openKept())
        try await world.publish(1)
        _ = try await world.subscribe("price > 100.0", .everyCrossing)
        try await world.publish(110)
        #expect(try await world.titles() == ["110.0"])
        try await stores.fillDisk(of: world.store)
        let pad = String(repeating: "x", count: 4000)
        let updates = [90, 120].map { price in
            (
                item: world.item.name,
                fields: (0..<7).map { WrittenField("f\($0)", .string(pad)) } + [WrittenField("price", .number("\(price)"))],
                place: ItemUpdate.Place?.none
            )
        }
        let results = await world.domain.items.publish(updates, of: world.device.app)
        #expect(results.allSatisfy { if case .failure = $0 { true } else { false } })
        try await stores.freeDisk(of: world.store)
        try await world.publish(115)
        #expect(try await world.titles() == ["110.0"])
        try await world.publish(90)
        try await world.publish(116)
        #expect(try await world.titles() == ["116.0"])
    }

    @Test
    func
        `a subscription that fires at its creation and cannot be written fires with the next update, and not again after a failed one`()
        async throws
    {
        let world = try await EngineWorld(stores.openKept())
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0", .everyCrossing, key: "told")
        try await world.publish(11)
        #expect(try await world.titles() == ["11.0"])
        try await stores.refuse(.firing, in: world.store)
        _ = try await world.subscribe("price > 10.0", .once, key: "pending")
        try await world.settle()
        await #expect(throws: StoreFault.self) { try await world.publish(12) }
        try await stores.allow(.firing, in: world.store)
        try await world.publish(13)
        #expect(try await world.titles() == ["11.0", "13.0"])
        try await world.publish(14)
        #expect(try await world.titles() == ["11.0", "13.0"])
    }

    @Test func `a firing found before a suspension is not delivered after it, and a crossing during it is ignored`()
        async throws
    {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0", .everyCrossing)
        try await world.leave(9.5, version: 2)
        _ = try await world.domain.devices.suspend(world.device)
        _ = try await world.domain.devices.resume(world.device)
        try await world.domain.itemEngine.notifyRest()
        #expect(try await world.titles().isEmpty)
        _ = try await world.domain.devices.suspend(world.device)
        try await world.publish(11)
        _ = try await world.domain.devices.resume(world.device)
        #expect(try await world.titles().isEmpty)
        try await world.publish(12)
        #expect(try await world.titles().isEmpty, "it was true when the device was resumed")
        try await world.publish(5)
        try await world.publish(13)
        #expect(try await world.titles() == ["13.0"])
        _ = try await world.domain.devices.suspend(world.device)
        try await world.publish(6)
        try await world.publish(14)
        _ = try await world.domain.devices.resume(world.device)
        try await world.publish(15)
        #expect(try await world.titles() == ["13.0"])
        _ = try await world.domain.devices.suspend(world.device)
        try await world.publish(7)
        _ = try await world.domain.devices.resume(world.device)
        try await world.publish(16)
        #expect(try await world.titles() == ["16.0"])
    }

    // MARK: Rows

    @Test
    func `one firing counts once for a subscription, however often it is delivered, and an earlier one not after a later`()
        async throws
    {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        let subscription = try await world.subscribe("price > 10.0", .every(coolDownSeconds: 0))
        func notify(_ number: Int64, _ price: Double) async throws {
            var state = ItemState(.merge)
            state.apply(.init(["price": ItemValue(.double(price))], at: world.domain.time.now()))
            let delivered = await world.domain.runtime.inbox.deliver(
                to: world.device.serial, .kept,
                rules: AppendRules(
                    effects: [
                        .fired(
                            .init(subscription: subscription.serial, revision: 1), on: world.item.name, by: number,
                            at: world.domain.time.now())
                    ])
            ) { id in
                Envelope(
                    id: id, device: world.device.serial, app: world.device.app, origin: subscription.origin,
                    kind: .fired(body: Array("{}".utf8), countsBadge: false), acceptedAt: world.domain.time.now(),
                    expiresAt: world.domain.time.now().adding(seconds: 60))
            }
            _ = delivered
        }
        for number in [5, 5, 4, 6, 6, 5] { try await notify(Int64(number), 11) }
        let waiting = try await world.store.waitingCount(device: world.device.serial, at: world.domain.time.now())
        #expect(waiting == 2)
    }

    @Test func `shapes go with their last condition, and items with their app`() async throws {
        let world = try await EngineWorld(stores.open())
        func rows(_ rows: StoredRows) async throws -> Int { try await stores.count(rows, in: world.store) }
        _ = try await world.subscribe("price > 10.0", key: "a")
        _ = try await world.subscribe("price > 20.0", key: "b")
        _ = try await world.subscribe("price < 20.0", key: "c")
        #expect(try await rows(.conditionShapes) == 2)
        _ = try await world.subscribe("price == 20.0", key: "c")
        #expect(try await rows(.conditionShapes) == 2, "the former one is not used any more")
        _ = try await world.domain.subscriptions.remove(.init(key: "a"), of: world.device)
        #expect(try await rows(.conditionShapes) == 2)
        _ = try await world.domain.subscriptions.remove(.init(), of: world.device)
        #expect(try await rows(.conditionShapes) == 0)
        #expect(try await rows(.subscriptions) == 0)
        #expect(try await rows(.handOvers) == 0)
        try await world.publish(1)
        #expect(try await rows(.items) == 1)
        try await world.domain.deletions.delete(try #require(AppID("com.example.app")))
        while try await !world.domain.deletions.proceed() {}
        #expect(try await rows(.items) == 0)
        await #expect(throws: (any Error).self) { try await world.publish(2) }
    }

    @Test func `a subscription of a user ends with the user, and a subscription of the device stays`() async throws {
        let world = try await EngineWorld(stores.open())
        _ = try await world.subscribe("price > 10.0", key: "of the device")
        let user = try #require(UserID("ada"))
        func says(_ claim: UserClaim) async throws {
            _ = try await world.domain.devices.update(world.device, from: nil, confirms: false, of: { claim }) { $0 }
        }
        try await says(.signedIn(user))
        _ = try await world.subscribe("price > 10.0", key: "of the user")
        try await world.publish(11)
        #expect(try await world.titles().count == 2)
        try await says(.signedOut)
        #expect(try await world.titles().count == 1)
        let left = try await world.domain.subscriptions.list(of: world.device, .init(), after: .init(0), limit: 10)
        #expect(left.map(\.definition.key) == ["of the device"])
        #expect(try await stores.count(.subscriptions, in: world.store) == 1)
    }
}
