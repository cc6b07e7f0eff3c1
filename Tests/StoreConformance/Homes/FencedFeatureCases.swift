import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let fencedFeatures: [StoreCase] = [
        StoreCase("a home that is removed changes no item, subscription or firing", fencedSubscriptions),
        StoreCase("a home that is removed changes no update, binding or completion", fencedUpdates),
        StoreCase("a home that is removed tends no location and no update that ended", fencedTending),
        StoreCase("a removed home makes no delivery of a paused update due", fencedResumption),
    ]
}

private func fencedSubscriptions(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, device, app) = (fixture.store, fixture.device, fixture.app)
    let subscription = try await fixture.subscribe(1)
    let ending = try SubscriptionFixture.definition(["b"], expiresAt: start.adding(seconds: 9))
    _ = try await fixture.subscribe(fixture.request(2, ending))
    let pace = FiringPace(maxFrequency: 1, bufferSize: 1)
    let paced = try await fixture.subscribe(fixture.request(3, SubscriptionFixture.definition(["a"], pace: pace)))
    let other = try await fixture.anotherDevice()
    _ = try await fixture.subscribe(4, of: other.serial)
    try await fixture.suspend(other.serial)
    let numbers = try await fixture.update("a", firing: [[fixture.target(subscription)]])
    let number = try #require(numbers?.first)
    let revision = try await fixture.setItemRules()
    let held = try fixture.held(paced, by: number)
    let (item, another) = (try fixture.item("a"), try fixture.item("b"))
    let request = fixture.request(5, try SubscriptionFixture.definition(["a"], key: "k"))
    let later = start.adding(seconds: 60)
    let handOvers = try await store.handOvers()
    #expect(handOvers.count == 1)
    let writes: [HomeWrite] = [
        HomeWrite("commitItem") { homeStore in
            let state = SubscriptionFixture.state(2)
            let stored = StoredItem(state: state, version: 1)
            _ = try await homeStore.commitItem(ItemCommit(key: another, item: stored, firings: []))
        },
        HomeWrite("markRulesApplied") { homeStore in try await homeStore.markRulesApplied(revision, of: app) },
        HomeWrite("putSubscription") { homeStore in _ = try await homeStore.putSubscription(request, at: start) },
        HomeWrite("hold") { homeStore in _ = try await homeStore.throttle([held], at: start) },
        HomeWrite("bringBackThrottled") { homeStore in try await homeStore.bringBackThrottled(at: start) },
        HomeWrite("dropThrottled") { homeStore in try await homeStore.dropThrottled([1], at: start) },
        HomeWrite("advance") { homeStore in try await homeStore.advance(number, to: nil, refused: []) },
        HomeWrite("applyHandOvers") { homeStore in
            try await homeStore.applyHandOvers(handOvers.map { AppliedHandOver($0) })
        },
        HomeWrite("endExpiredSubscriptions") { homeStore in
            _ = try await homeStore.endExpiredSubscriptions(at: later, limit: 9)
        },
        HomeWrite("endSubscriptions of rules") { homeStore in
            _ = try await homeStore.endSubscriptions([subscription.serial], of: app, rulesRevision: revision)
        },
        HomeWrite("endSubscriptions of a list") { homeStore in
            _ = try await homeStore.endSubscriptions([subscription.serial], of: device)
        },
        HomeWrite("endSubscriptions of a filter") { homeStore in
            _ = try await homeStore.endSubscriptions(of: device, SubscriptionFilter())
        },
        HomeWrite("removeSubscriptions") { homeStore in
            let ended = EndedSubscription(serial: subscription.serial, device: device)
            try await homeStore.removeSubscriptions([ended], at: start)
        },
        HomeWrite("resetSubscriptions") { homeStore in
            _ = try await homeStore.resetSubscriptions(on: item, after: SubscriptionSerial(0), limit: 9, all: true)
        },
        HomeWrite("deleteItem") { homeStore in _ = try await homeStore.deleteItem(item, ifIdleSince: nil) },
    ]
    try await HomeHandles(of: store).check(writes) {
        let subscriptions = try await store.subscriptions(
            of: device, SubscriptionFilter(), after: SubscriptionSerial(0), limit: 9
        ).map(\.serial)
        let serials = try await store.serials(of: device)
        let items = try await store.items(of: app, prefix: "", after: "", limit: 9).count
        let firings = try await store.firingNumbers(of: item)
        let unapplied = try await store.appsWithUnappliedRules().count
        let heldUntil = try await store.nextThrottledFiring()?.milliseconds
        let pending = try await store.handOvers().map(\.number)
        return [
            "\(subscriptions) \(serials)", "\(items) \(firings)", "\(unapplied)", "\(String(describing: heldUntil))",
            "\(pending)",
        ]
    }
}

private func fencedUpdates(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let (store, device, app, key) = (fixture.store, fixture.device, fixture.app, fixture.key)
    let binding = try await fixture.bind()
    let (given, waking) = (try await fixture.publish(1), try await fixture.publish(2))
    try await fixture.give(1, given, to: binding)
    let name = fixture.name(given, binding)
    let request = fixture.request(3, fixture.definition())
    let (later, revision) = (start.adding(seconds: 2000), binding.revision)
    let completion = Completion(
        key: fixture.name(waking, binding), machine: CompletionMachine(), changedAt: start)
    let writes: [HomeWrite] = [
        HomeWrite("publishUpdate") { homeStore in _ = try await homeStore.publishUpdate(request, at: start) },
        HomeWrite("woke") { homeStore in try await homeStore.woke(waking.serial, to: nil) },
        HomeWrite("evaluated") { homeStore in
            _ = try await homeStore.evaluated(
                binding.serial, revision: revision, to: AudienceCursor(waking.serial, rules: 1), isFull: false,
                adding: [completion], at: start)
        },
        HomeWrite("report") { homeStore in
            _ = try await homeStore.report([], receivedTo: ReceivedTo(all: 1, updates: 1), of: binding.serial, at: start)
        },
        HomeWrite("saw") { homeStore in try await homeStore.saw(binding.serial, to: waking.serial) },
        HomeWrite("offerAgain") { homeStore in
            try await homeStore.offerAgain(to: binding.serial, needsResync: true, at: start)
        },
        HomeWrite("putOff") { homeStore in
            try await homeStore.putOff(name, revision: revision, until: later)
        },
        HomeWrite("absorb") { homeStore in _ = try await homeStore.coalesce([(name, by: waking.serial)], at: start) },
        HomeWrite("resync") { homeStore in
            let resync = ResyncRequest(proposed: fixture.id(9), body: [1])
            _ = try await homeStore.resync(binding.serial, resync, at: start)
        },
        HomeWrite("left") { homeStore in
            _ = try await homeStore.leftAudience([name], of: binding.serial, revision: revision, at: start)
        },
        HomeWrite("returned") { homeStore in
            try await homeStore.returned([name], of: binding.serial, revision: revision, at: start)
        },
        HomeWrite("unsupported") { homeStore in
            try await homeStore.unsupported([name], of: binding.serial, revision: revision, at: start)
        },
        HomeWrite("bringBackCompletions") { homeStore in
            _ = try await homeStore.bringBackCompletions(dueAfter: start, at: start, limit: 9)
        },
        HomeWrite("endCompletions") { homeStore in try await homeStore.endCompletions([(name, .gone)], at: start) },
        HomeWrite("requeue") { homeStore in
            _ = try await homeStore.requeue([name], at: start, noting: (key: key, update: given.id), of: app)
        },
        HomeWrite("findUnfinishedOfEnded") { homeStore in
            _ = try await homeStore.findUnfinishedOfEnded(after: UpdateSerial(0), limit: 9)
        },
        HomeWrite("change") { homeStore in _ = try await homeStore.change(binding, hasOtherKinds: false, at: start) },
        HomeWrite("change of kinds") { homeStore in
            _ = try await homeStore.change(binding, hasOtherKinds: true, at: start)
        },
        HomeWrite("binding") { homeStore in
            _ = try await homeStore.binding(of: device, profile: "other", at: start)
        },
        HomeWrite("release") { homeStore in _ = try await homeStore.release(binding.serial, limit: 9, at: start) },
        HomeWrite("withdrawUpdate") { homeStore in _ = try await homeStore.withdrawUpdate(waking, by: key, at: start) },
        HomeWrite("resumeUpdate") { homeStore in
            _ = try await homeStore.resumeUpdate(given, by: key, audienceBytes: 1000, at: start)
        },
        HomeWrite("endExpiredUpdates") { homeStore in _ = try await homeStore.endExpiredUpdates(at: later, limit: 9) },
        HomeWrite("forgetUpdates") { homeStore in
            _ = try await homeStore.forgetUpdates(UpdateLimits(), by: nil, limit: 9)
        },
        HomeWrite("forgetAudit") { homeStore in
            try await homeStore.forgetAudit(before: later, beyond: 0, limit: 9)
        },
    ]
    try await HomeHandles(of: store).check(writes) {
        let updates = try await store.updates(of: app, .all, before: nil, limit: 9).count
        let live = try await store.liveUpdates(of: app).map(\.serial.rawValue)
        let unfinished = try await store.unfinished(of: binding.serial).map(\.machine.state)
        let present = try await store.presentBinding(of: device)
        let audit = try await store.audit(of: app, before: nil, limit: 9).count
        let waiting = try await fixture.base.waiting().map(\.position)
        return [
            "\(updates) \(live)", "\(unfinished)", "\(audit) \(waiting)",
            "\(String(describing: present?.serial)) \(String(describing: present?.revision))",
        ]
    }
}

private func fencedTending(_ stores: any StoreMaker) async throws {
    let fixture = try await UpdateFixture(stores)
    let (store, device, update) = (fixture.store, fixture.device, try await fixture.publish(1))
    var binding = try await fixture.bind()
    try await fixture.evaluate([update], binding, machine: CompletionMachine(.stored, attempt: 1))
    _ = try await store.withdrawUpdate(update, by: fixture.key, at: start)
    binding.locatedAt = start
    _ = try #require(try await store.change(binding, hasOtherKinds: false, at: start))
    let writes: [HomeWrite] = [
        HomeWrite("unfinishedOfEnded") { homeStore in _ = try await homeStore.unfinishedOfEnded(limit: 9) },
        HomeWrite("forgetLocations") { homeStore in try await homeStore.forgetLocations(before: start, limit: 9) },
    ]
    try await HomeHandles(of: store).check(writes) {
        let present = try await store.presentBinding(of: device)
        return ["\(String(describing: present?.revision)) \(String(describing: present?.locatedAt))"]
    }
}

private func fencedResumption(_ stores: any StoreMaker) async throws {
    let original = try await UpdateFixture(stores)
    let (binding, update) = (try await original.bind(), try await original.publish(1, ttl: 5000))
    try await original.evaluate([update], binding, machine: CompletionMachine(.stored, attempt: 1, dueAt: start))
    guard let store = try await stores.restored(original.store, holdsUpdates: true) else { return }
    let (fixture, key) = (original.again(store), original.key)
    let paused = try #require(try await store.update(update.id, of: fixture.app))
    let resume = HomeWrite("resumeUpdate") { homeStore in
        _ = try await homeStore.resumeUpdate(paused, by: key, audienceBytes: 0, at: start)
    }
    try await HomeHandles(of: store).check([resume]) {
        let completion = try await fixture.completion(update, binding)
        return ["\(String(describing: completion?.machine.dueAt))"]
    }
}
