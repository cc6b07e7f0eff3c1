import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let fencedWrites: [StoreCase] = [
        StoreCase("a home that is removed changes no inbox, channel or device", fencedInboxes),
        StoreCase("a home that is removed changes no push", fencedPushes),
        StoreCase("a removed home stores no connection of a device", fencedComing),
        StoreCase("a home that is removed changes no watch, ping or callback", fencedWatches),
        StoreCase("a home that is removed changes no service or request", fencedServices),
        StoreCase("a home that is removed reads as before", removedHomeReads),
    ]
}

private func fencedInboxes(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device, channel) = (fixture.store, fixture.device.serial, fixture.second.id)
    _ = try await fixture.append(fixture.envelope(1))
    let content = try await store.addContent([1])
    let opened = ChannelID(Bytes16(high: 7, low: 9))
    let new = NewDevice(DeviceID(Bytes16(high: 1, low: 2)), app: try StoreFixture.appID)
    let later = start.adding(seconds: 120)
    let writes: [HomeWrite] = [
        HomeWrite("append") { homeStore in
            _ = try await homeStore.commit([.append(fixture.envelope(2), AppendRules())])
        },
        HomeWrite("several operations") { homeStore in
            let appends = (Int64(3)...6).map { InboxOperation.append(fixture.envelope($0), AppendRules()) }
            _ = try await homeStore.commit(appends + [fixture.acknowledge(1)])
        },
        HomeWrite("sweep") { homeStore in _ = try await homeStore.sweep(at: later, limit: 10) },
        HomeWrite("addContent") { homeStore in _ = try await homeStore.addContent([2]) },
        HomeWrite("releaseContent") { homeStore in try await homeStore.releaseContent(content) },
        HomeWrite("openChannel") { homeStore in
            _ = try await homeStore.openChannel(
                opened, device: device, name: nil, vapidKey: nil, wake: nil, limit: 10, at: start)
        },
        HomeWrite("closeChannel") { homeStore in
            _ = try await homeStore.closeChannel(channel, device: device, at: start)
        },
        HomeWrite("insertDevice") { homeStore in
            _ = try await homeStore.insertDevice(new, at: start, credential: .fixed(SecretHash(of: [2])))
        },
        HomeWrite("changeRegistration") { homeStore in
            let profile = try PushFixture.profile("aa01")
            _ = try await homeStore.changeRegistration(of: device, at: start) { _ in .reports(profile, confirms: true) }
        },
        HomeWrite("writeRegistration") { homeStore in
            let basis = try #require(try await homeStore.registration(of: device))
            let profile = try PushFixture.profile("aa02")
            _ = try await homeStore.writeRegistration(.reports(profile, confirms: true), decidedOn: basis, at: start)
        },
        HomeWrite("markSeen") { homeStore in
            try await homeStore.markSeen([device], areAnonymous: false, at: later)
        },
        HomeWrite("resetBadge") { homeStore in _ = try await homeStore.resetBadge(of: device) },
        HomeWrite("renewCredential") { homeStore in
            _ = try await homeStore.renewCredential(of: device, to: SecretHash(of: [3]))
        },
        HomeWrite("deleteDevice") { homeStore in _ = try await homeStore.deleteDevice(device, at: start) },
        HomeWrite("deleteDevice that was not seen") { homeStore in
            let cutoff = RetentionTime.uninterrupted(at: later).cutoff(afterSeconds: 1)
            _ = try await homeStore.deleteDevice(device, unlessSeenAfter: cutoff, at: later)
        },
        HomeWrite("continueDeletions") { homeStore in _ = try await homeStore.continueDeletions(at: start, limit: 9) },
    ]
    try await HomeHandles(of: store).check(writes) {
        let waiting = try await fixture.waiting().map(\.position)
        let outcome = try await fixture.outcome(1, at: start)
        let channels = try await store.channels(device: device).map(\.id)
        let stored = try await store.device(device)
        let added = try await store.device(new.proposed)
        let token = try await store.registration(of: device)?.profile.address?.token
        return [
            "\(waiting) \(String(describing: outcome)) \(channels)",
            "\(String(describing: stored)) \(String(describing: added)) \(token == nil)",
        ]
    }
}

private func fencedPushes(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    let (store, queue) = (fixture.store, fixture.queue)
    try await fixture.commit(fixture.append(1))
    let leased = try #require(try await fixture.lease().first)
    let other = try await fixture.base.insert(
        NewDevice(
            DeviceID(Bytes16(high: 1, low: 3)), app: try StoreFixture.appID, profile: try PushFixture.profile("cc03")),
        secret: [5])
    let otherDevice = try #require(other)
    let channel = try await StoreFixture.open(1, of: otherDevice, in: store)
    let append = InboxOperation.append(
        fixture.base.envelope(2, on: channel, ttl: 100_000), AppendRules(wake: WakeRequest(.background, dueAt: start)))
    try await fixture.commit(append)
    let writes: [HomeWrite] = [
        HomeWrite("leasePushes") { homeStore in
            _ = try await homeStore.leasePushes(of: queue, limit: 9, at: start, until: start.adding(seconds: 60))
        },
        HomeWrite("endPushes") { homeStore in
            _ = try await homeStore.endPushes([PushEnd(leased, .handed, at: start)])
        },
        HomeWrite("bringBackPushes") { homeStore in try await homeStore.bringBackPushes(at: start) },
        HomeWrite("requeueParkedPushes") { homeStore in
            _ = try await homeStore.requeueParkedPushes(of: queue.app, at: start)
        },
        HomeWrite("sweepPushes") { homeStore in _ = try await homeStore.sweepPushes(at: start, limit: 9) },
    ]
    try await HomeHandles(of: store).check(writes) {
        let standings = try await fixture.standings(1)
        let isDue = try await fixture.isDue(at: start)
        return ["\(standings)", "\(isDue)"]
    }
}

private func fencedComing(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    let device = fixture.device
    try await fixture.commit(fixture.append(1, ttl: 1_000_000))
    // After the third push without an answer, the next one is an hour later, unless the device connects.
    for minutes in [Int64(0), 20, 40] { try await fixture.hand(at: start.after(60 * minutes)) }
    let came = start.after(60 * 60)
    let come = HomeWrite("devicesCame") { homeStore in try await homeStore.devicesCame([device], at: came) }
    try await HomeHandles(of: fixture.store).check([come]) {
        let isDue = try await fixture.isDue(at: came)
        return ["\(isDue)"]
    }
}

private func fencedWatches(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let (store, first, second) = (fixture.store, fixture.base.first, fixture.base.second)
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.put(fixture.request(on: second, ping: nil, gone: "http://other.example/gone"))
    _ = try await store.closeChannel(second.id, device: second.device, at: start)
    let calls = try await fixture.lease(at: start)
    let firstPing = calls.first { $0.watch != nil }
    let firstCallback = calls.first { $0.callback != nil }
    let (ping, callback) = (try #require(firstPing), try #require(firstCallback))
    let delivered = try #require(callback.callback)
    let later = start.adding(seconds: 3600)
    let changed = try fixture.request(ping: "http://example.com/other")
    let record = try fixture.record(ping, due: WatchFixture.aMonth)
    let end = fixture.end(callback)
    let due = try await fixture.due(at: later)
    let writes: [HomeWrite] = [
        HomeWrite("leaseWork") { homeStore in
            _ = try await homeStore.leaseWork(due, at: later, until: later.adding(seconds: 30))
        },
        HomeWrite("record ping") { homeStore in _ = try await homeStore.record(record) },
        HomeWrite("record callback") { homeStore in
            _ = try await homeStore.record(.done, of: delivered, end: end)
        },
        HomeWrite("bringBackWork") { homeStore in try await homeStore.bringBackWork(at: start) },
        HomeWrite("spreadOverduePings") { homeStore in try await homeStore.spreadOverduePings(at: later) },
        HomeWrite("putWatch") { homeStore in _ = try await homeStore.putWatch(changed, at: start) },
        HomeWrite("removeWatch") { homeStore in _ = try await homeStore.removeWatch(of: first.serial) },
    ]
    try await HomeHandles(of: store).check(writes) {
        let watch = try await store.watch(of: first.serial)
        let due = try await fixture.due(at: later).map(\.serial)
        let numbers = [watch?.revision, watch?.dueAt?.milliseconds, watch?.lastPing?.at.milliseconds]
        return ["\(numbers)", "\(due)"]
    }
}

private func fencedServices(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    let request = try await fixture.make(1, from: phone, to: tablet)
    let step = ServiceFixture.operation(
        .finished(request.serial, replyHash: [1], at: start), of: request, at: 2)
    let writes: [HomeWrite] = [
        HomeWrite("step") { homeStore in _ = try await homeStore.commit([step]) },
        HomeWrite("putServiceProfile") { homeStore in
            _ = try await homeStore.putServiceProfile(try ServiceFixture.profile(), of: phone.serial)
        },
        HomeWrite("removeServiceProfile") { homeStore in
            _ = try await homeStore.removeServiceProfile(of: tablet.serial)
        },
        HomeWrite("setClusterPlace") { homeStore in
            _ = try await homeStore.setClusterPlace(ClusterPlace(), of: tablet.id, app: tablet.app)
        },
        HomeWrite("cancelRequest") { homeStore in _ = try await homeStore.cancelRequest(request.serial, at: start) },
        HomeWrite("forgetRequests") { homeStore in
            _ = try await homeStore.forgetRequests(by: .uninterrupted(at: start), limit: 9)
        },
    ]
    try await HomeHandles(of: store).check(writes) {
        let stored = try await store.serviceRequest(request.id)
        let found = try await fixture.found(by: phone)
        let cluster = try await store.cluster(of: tablet.app).count
        return ["\(String(describing: stored?.state))", "\(found?.count ?? -1) \(cluster)"]
    }
}

private func removedHomeReads(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1))
    let homeStore = try await HomeHandles(of: fixture.store).removed
    let device = fixture.device.serial
    let waiting = try await homeStore.waiting(device: device, after: 0, limit: 9, bytes: 1 << 20, at: start)
    #expect(waiting?.map(\.position) == [1])
    #expect(try await homeStore.channels(device: device).count == 2)
}
