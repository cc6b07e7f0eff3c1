import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = PushFixture.start

extension StoreCase {
    static let outbox: [StoreCase] = [
        StoreCase("a lost lease has no effect any more", lostLease),
        StoreCase("a lost lease has no effect on a device with another address", lostLeaseElsewhere),
        StoreCase("concurrent answers include the effects of those before them", endedAtOnce),
        StoreCase("a push is retried at its time, and is counted correctly", triedAgain),
        StoreCase("a push for a message that does not wait any more is cancelled", cancelledPush),
        StoreCase("a push expires with its time", expiredPush),
        StoreCase("a pending push that expires is ended by its answer", expiredUnderWay),
        StoreCase("a dead token suspends its device, and the next registration resumes it", deadToken),
        StoreCase("a report about an earlier token does not suspend, and the push goes to the new one", earlierToken),
        StoreCase("a report from before the device confirmed its token does not suspend", staleNews),
        StoreCase(
            "a push that waits because of a report about a token is sent at once to another one", staleNewsOfEarlierToken),
        StoreCase("a token of the other environment is found there, and stays there", otherEnvironment),
        StoreCase("a device that repeats the wrong environment is found in its corrected one", reportedEnvironment),
        StoreCase("a parked or pending push follows its device to another environment", parkedFollows),
        StoreCase("a token that was reported today is not dead since yesterday", confirmedToday),
        StoreCase("the environment of an earlier token does not apply to the new one", environmentOfEarlierToken),
        StoreCase("a report about an earlier token sends the new one to its own environment, anew", answersOfEarlierToken),
        StoreCase("a limited number of parked pushes of a device is stored, the newest", parkedAreBounded),
        StoreCase("finished pushes are forgotten before parked ones", overBeforeParked),
        StoreCase("pushes of a removed device are cancelled", pushesOfNobody),
        StoreCase("a parked push waits, is listed, and is retried when it is requeued", parkedPush),
        StoreCase("an operator's suspension meanwhile is not undone", suspendedMeanwhile),
        StoreCase("pushes of a deleted device and a deleted app are not sent", deletedOnes),
        StoreCase(
            "the results of pushes are forgotten in time, and of one device when there are too many", factsAreForgotten),
        StoreCase("a clock that was ahead delays no push", clockWasAhead),
        StoreCase("push queues are leased separately, the oldest first, and no more than requested", queuesAreApart),
        StoreCase("a change that cannot be stored leaves the other pushes correct", poisonedNeighbour),
        StoreCase("a parked push that is retried expires with its message", requeuedExpires),
        StoreCase("the copy of a notification is removed when its push ends", copyIsRemoved),
    ]
}

private func lostLease(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let first = try await fixture.lease()[0]
    let end = start.after(LeasedPush.leaseSeconds)
    let second = try await fixture.lease(at: end)[0]
    #expect(second.id == first.id && second.lease.fence == first.lease.fence + 1)
    let verdicts: [PushEnd.Verdict] = [
        .tokenDead(reason: "Unregistered", since: nil), .handed, .again(at: end, isSpent: true, reason: "busy"), .elsewhere,
        .parked(reason: "BadTopic"),
    ]
    for verdict in verdicts { #expect(try await fixture.end(first, verdict, at: end) == nil, "\(verdict)") }
    #expect(try await fixture.status == .registered)
    #expect(try await fixture.standings(1, at: end) == [.state(.leased)])
    #expect(try await fixture.end(second, .handed, at: end) == .handed)
    #expect(try await fixture.end(second, .handed, at: end) == nil, "once")
}

private func lostLeaseElsewhere(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let first = try await fixture.lease()[0]
    let end = start.after(LeasedPush.leaseSeconds)
    let second = try await fixture.lease(at: end)[0]
    try await fixture.register("aa02", at: end)
    let verdicts: [PushEnd.Verdict] = [
        .again(at: end, isSpent: true, reason: "busy"), .elsewhere, .tokenDead(reason: "Unregistered", since: nil),
        .parked(reason: "BadDeviceToken", isOfAddress: true),
    ]
    for verdict in verdicts { #expect(try await fixture.end(first, verdict, at: end) == nil, "\(verdict)") }
    #expect(try await fixture.standings(1, at: end) == [.state(.leased)], "the second lease is under way")
    #expect(try await fixture.lease(at: end).isEmpty)
    #expect(try await fixture.end(second, .handed, at: end) == .handed)
}

private func endedAtOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, urgency: .high), fixture.append(2, .alert, urgency: .high))
    let now = start.after(1)
    let pushes = try await fixture.lease() + fixture.lease(at: now)
    try #require(pushes.count == 2)
    let dead = PushEnd.Verdict.tokenDead(reason: "Unregistered", since: nil)
    let ends = [
        PushEnd(pushes[0], dead, at: now), PushEnd(pushes[0], .handed, at: now), PushEnd(pushes[1], dead, at: now.after(1)),
    ]
    #expect(try await fixture.store.endPushes(ends) == [.rejected, .rejected], "each lease ends once")
    #expect(try await fixture.status == .suspended(.tokenDead))
    let suspendedAt = try await fixture.store.registration(of: fixture.device)?.statusAt
    #expect(suspendedAt == now, "the device is suspended once")
    for position in Int64(1)...2 { #expect(try await fixture.standings(position).first == .state(.rejected)) }
}

private func triedAgain(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let first = try await fixture.lease()[0]
    let later = start.after(900)
    #expect(
        try await fixture.end(first, .again(at: later, isSpent: true, reason: "ServiceUnavailable")) == .scheduled)
    let records = try await fixture.store.pushes(
        for: fixture.base.envelope(1).id, of: fixture.device, at: start)
    #expect(records.map(\.standing) == [.state(.scheduled)])
    #expect(records.map(\.dueAt) == [later] && records.map(\.reason) == ["ServiceUnavailable"])
    #expect(records.map(\.id) == [first.id])
    #expect(try await fixture.lease(at: later.after(-1)).isEmpty)
    let second = try await fixture.lease(at: later)[0]
    #expect(second.id == first.id && second.attempt == 2)
    try await fixture.end(second, .again(at: later, isSpent: false, reason: "unreachable"), at: later)
    #expect(try await fixture.lease(at: later).map(\.attempt) == [2], "a failed attempt does not count")
}

private func cancelledPush(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    try await fixture.end(push, .again(at: start.after(30), isSpent: true, reason: "timedOut"))
    try await fixture.commit(fixture.acknowledge(1))
    #expect(try await fixture.lease(at: start.after(30)).isEmpty)
    #expect(try await fixture.standings(1) == [.state(.cancelled)])
    // The device can be woken again.
    try await fixture.commit(fixture.append(2, at: start.after(40)))
    #expect(try await fixture.lease(at: start.after(40)).count == 1)
}

private func expiredPush(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, ttl: 60))
    let push = try await fixture.lease()[0]
    try await fixture.end(push, .again(at: start.after(90), isSpent: true, reason: "x"))
    #expect(try await fixture.lease(at: start.after(90)).isEmpty)
    #expect(try await fixture.standings(1) == [.state(.expired)])
    // A push that is not leased, because its push queue is paused, expires as well.
    try await fixture.commit(fixture.append(2, at: start.after(100), ttl: 60))
    let other = try await fixture.lease(at: start.after(100))[0]
    try await fixture.end(other, .again(at: start.after(110), isSpent: false, reason: "x"), at: start.after(100))
    #expect(try await fixture.store.sweepPushes(at: start.after(161), limit: 100))
    #expect(try await fixture.standings(2) == [.state(.expired)])
    #expect(try await fixture.lease(at: start.after(161)).isEmpty)
}

private func expiredUnderWay(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, ttl: 60))
    let push = try await fixture.lease()[0]
    #expect(try await fixture.store.sweepPushes(at: start.after(61), limit: 100))
    #expect(try await fixture.end(push, .handed, at: start.after(62)) == .handed)
    #expect(try await fixture.standings(1) == [.state(.handed)])
    try await fixture.commit(fixture.append(2, at: start.after(20_000)))
    #expect(try await fixture.lease(at: start.after(20_000)).count == 1, "the device can be woken again")
}

private func deadToken(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    let state = try await fixture.end(push, .tokenDead(reason: "Unregistered", since: start.after(5)), at: start.after(9))
    #expect(state == .rejected)
    #expect(try await fixture.status == .suspended(.tokenDead))
    #expect(try await fixture.standings(1) == [.state(.rejected), .suspended])
    #expect(try await !fixture.isDue(at: start.after(100_000)))
    try await fixture.register("aa01", at: start.after(20))
    #expect(try await fixture.status == .registered)
    #expect(try await fixture.lease(at: start.after(20)).count == 1, "the waiting push is sent")
}

private func earlierToken(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    try await fixture.register("aa02", at: start.after(1))
    let state = try await fixture.end(push, .tokenDead(reason: "Unregistered", since: start.after(2)), at: start.after(3))
    #expect(state == .scheduled)
    #expect(try await fixture.status == .registered)
    let again = try await fixture.lease(at: start.after(3))
    #expect(try again.map(\.token) == [PushToken(hexadecimal: "aa02")])
    #expect(again.map(\.id) == [push.id])
}

private func staleNews(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    let state = try await fixture.end(push, .tokenDead(reason: "Unregistered", since: start.after(-1)))
    #expect(state == .scheduled)
    #expect(try await fixture.status == .registered)
    #expect(try await fixture.lease(at: start.after(899)).isEmpty)
    #expect(try await fixture.lease(at: start.after(900)).count == 1)
}

private func staleNewsOfEarlierToken(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    try await fixture.end(push, .tokenDead(reason: "Unregistered", since: start.after(-1)))
    try await fixture.register("aa02", at: start.after(5))
    #expect(try await fixture.lease(at: start.after(5)).map(\.token) == [PushToken(hexadecimal: "aa02")])
}

private func otherEnvironment(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    #expect(!push.isElsewhere)
    #expect(try await fixture.end(push, .elsewhere) == .scheduled)
    let elsewhere = try await fixture.lease(in: fixture.sandbox)
    #expect(elsewhere.map(\.id) == [push.id] && elsewhere.map(\.isElsewhere) == [true])
    try await fixture.end(elsewhere[0], .handed)
    #expect(try await fixture.store.registration(of: fixture.device)?.profile.address?.environment == .sandbox)
    #expect(try await fixture.store.dueQueues(at: start.after(1200)) == [fixture.sandbox])
    #expect(try await fixture.lease(at: start.after(1200), in: fixture.sandbox).map(\.isElsewhere) == [false])
}

private func environmentOfEarlierToken(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    try await fixture.end(push, .elsewhere)
    let elsewhere = try await fixture.lease(in: fixture.sandbox)[0]
    try await fixture.register("aa02", .production, at: start.after(1))
    try await fixture.end(elsewhere, .handed, at: start.after(2))
    #expect(try await fixture.store.registration(of: fixture.device)?.profile.address?.environment == .production)
}

private func answersOfEarlierToken(_ stores: any StoreMaker) async throws {
    let verdicts: [PushEnd.Verdict] = [
        .elsewhere, .again(at: start.after(900), isSpent: true, reason: "TooManyRequests"),
        .tokenDead(reason: "BadDeviceToken", since: nil),
    ]
    for verdict in verdicts {
        let fixture = try await PushFixture(stores)
        try await fixture.commit(fixture.append(1))
        let first = try await fixture.lease()[0]
        try await fixture.end(first, .elsewhere)
        // The push is under way in the other environment, with a token that the device replaces meanwhile.
        let second = try await fixture.lease(in: fixture.sandbox)[0]
        try await fixture.register("aa02", .production, at: start.after(1))
        #expect(try await fixture.end(second, verdict, at: start.after(2)) == .scheduled)
        #expect(try await fixture.status == .registered)
        #expect(try await fixture.lease(at: start.after(2), in: fixture.sandbox).isEmpty)
        let again = try await fixture.lease(at: start.after(2))
        let token = try PushToken(hexadecimal: "aa02")
        #expect(again.map(\.token) == [token], "\(verdict)")
        #expect(again.map(\.isElsewhere) == [false] && again.map(\.attempt) == [1])
    }
}

private func parkedPush(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    #expect(try await fixture.end(push, .parked(reason: "BadTopic")) == .parked)
    #expect(try await fixture.lease(at: start.after(3600)).isEmpty)
    let app = fixture.base.device.app
    let parked = try await fixture.store.parkedPushes(of: app, limit: 10)
    #expect(parked.map(\.reason) == ["BadTopic"] && parked.map(\.id) == [push.id])
    #expect(try await fixture.store.parkedPushes(of: AppSerial(app.rawValue + 1), limit: 10).isEmpty)
    #expect(try await fixture.store.requeueParkedPushes(of: AppSerial(app.rawValue + 1), at: start) == 0)
    #expect(try await fixture.store.requeueParkedPushes(of: app, at: start.after(10)) == 1)
    #expect(try await fixture.lease(at: start.after(10)).map(\.id) == [push.id])
    #expect(try await fixture.store.parkedPushes(of: app, limit: 10).isEmpty)
}

private func parkedAreBounded(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.setAlertText("{}")
    let most = PushLimits.keptPerDevice + PushLimits.keptPerDevice / 4
    for position in Int64(1)...Int64(most + 20) {
        let now = start.after(2 * position)
        try await fixture.commit(fixture.append(position, .alert, at: now, urgency: .high))
        let push = try #require(try await fixture.lease(at: now).first { $0.content != .wake })
        try await fixture.end(push, .parked(reason: "\(position)"), at: now)
    }
    let parked = try await fixture.store.parkedPushes(of: fixture.base.device.app, limit: 1000)
    #expect(parked.count <= most && parked.count >= PushLimits.keptPerDevice)
    #expect(parked.last?.reason == "\(most + 20)" && parked.first?.reason != "1")
}

private func overBeforeParked(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.setAlertText("{}")
    for position in Int64(1)...Int64(PushLimits.keptPerDevice + PushLimits.keptPerDevice / 4 + 5) {
        let now = start.after(2 * position)
        try await fixture.commit(fixture.append(position, .alert, at: now, urgency: .high))
        let push = try #require(try await fixture.lease(at: now).first { $0.content != .wake })
        try await fixture.end(push, position == 1 ? .parked(reason: "BadTopic") : .handed, at: now)
    }
    #expect(try await fixture.standings(1).contains(.state(.parked)))
    #expect(try await fixture.standings(2).isEmpty)
}

private func pushesOfNobody(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.setAlertText("{}")
    for position in Int64(1)...3 { try await fixture.commit(fixture.append(position, .alert, urgency: .high)) }
    let underWay = try await fixture.lease()[0]
    try await fixture.end(try await fixture.lease(at: start.after(1))[0], .parked(reason: "BadTopic"), at: start.after(1))
    _ = try await fixture.store.deleteDevice(fixture.device, at: start.after(2))
    #expect(try await fixture.standings(1) == [.state(.leased)])
    #expect(try await fixture.standings(2) == [.state(.cancelled)])
    #expect(try await fixture.standings(3) == [.state(.cancelled)])
    #expect(try await fixture.store.requeueParkedPushes(of: fixture.base.device.app, at: start.after(3)) == 0)
    #expect(try await fixture.end(underWay, .again(at: start.after(9), isSpent: true, reason: "x")) == .scheduled)
    #expect(try await fixture.lease(at: start.after(10)).isEmpty)
    #expect(try await fixture.standings(1) == [.state(.cancelled)])
}

private func suspendedMeanwhile(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    try await fixture.change { RegistrationRules.suspend($0, because: .byOperator, at: start) }
    #expect(try await fixture.end(push, .tokenDead(reason: "Unregistered", since: nil)) == .rejected)
    #expect(try await fixture.status == .suspended(.byOperator))
    try await fixture.commit(fixture.append(2))
    #expect(try await !fixture.isDue(at: start.after(10_000)))
    // A push that is tried again waits until the device can be reached.
    try await fixture.change { RegistrationRules.resume($0, at: start) }
    let second = try await fixture.lease()[0]
    try await fixture.change { RegistrationRules.suspend($0, because: .byOperator, at: start) }
    try await fixture.end(second, .again(at: start, isSpent: true, reason: "x"))
    #expect(try await fixture.lease().isEmpty)
    try await fixture.change { RegistrationRules.resume($0, at: start.after(1)) }
    #expect(try await fixture.lease(at: start.after(1)).map(\.id) == [second.id])
}

private func deletedOnes(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    try await fixture.end(push, .again(at: start, isSpent: true, reason: "x"))
    _ = try await fixture.store.deleteDevice(fixture.device, at: start)
    #expect(try await fixture.lease().isEmpty)
    #expect(try await !fixture.isDue(at: start.after(1)))
    let other = try await PushFixture(stores)
    try await other.commit(other.append(1))
    _ = try await other.store.deleteApp(try StoreFixture.appID, at: start)
    #expect(try await other.lease().isEmpty)
}

private func factsAreForgotten(_ stores: any StoreMaker) async throws {
    var limits = InboxLimits()
    limits.outcomeRetentionSeconds = 1000
    let fixture = try await PushFixture(stores, StoreSettings(inbox: limits))
    try await fixture.commit(fixture.append(1))
    try await fixture.hand(at: start)
    #expect(try await fixture.store.sweepPushes(at: start.after(999), limit: 10))
    #expect(try await fixture.standings(1).first == .state(.handed))
    #expect(try await fixture.store.sweepPushes(at: start.after(1000), limit: 10))
    #expect(try await fixture.standings(1) == [.state(.scheduled)])

    let many = try await PushFixture(stores)
    try await many.commit(many.append(1, ttl: 1_000_000_000))
    var now = start
    for _ in 0..<PushLimits.keptPerDevice * 4 / 3 {
        try await many.hand(at: now)
        now = now.after(86_400)
    }
    let kept = try await many.standings(1).count
    #expect(kept >= PushLimits.keptPerDevice && kept <= PushLimits.keptPerDevice * 5 / 4 + 1, "\(kept)")
}

private func clockWasAhead(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    let ahead = start.after(86_400)
    try await fixture.commit(fixture.append(1, at: ahead, ttl: 1_000_000))
    try await fixture.store.bringBackPushes(at: start)
    let push = try await fixture.lease()[0]
    try await fixture.end(push, .again(at: start.after(30), isSpent: true, reason: "x"))
    try await fixture.store.bringBackPushes(at: start.after(-3600))
    #expect(try await fixture.lease(at: start.after(-3600 + 29)).isEmpty)
    #expect(try await fixture.lease(at: start.after(-3600 + 30)).count == 1)
    try await fixture.store.bringBackPushes(at: start.after(-7200))
    #expect(try await fixture.lease(at: start.after(-7200 + 60)).count == 1, "a lease, too")
}

private func queuesAreApart(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    var devices: [Device] = []
    for number in UInt64(1)...5 {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID,
            profile: try PushFixture.profile("bb0\(number)", number == 5 ? .sandbox : .production))
        let device = try #require(try await fixture.base.insert(new, secret: [9, UInt8(number)]))
        let channel = try await StoreFixture.open(number, of: device, in: fixture.store)
        let now = start.after(Int64(10 - number))
        let rules = AppendRules(wake: WakeRequest(.background, dueAt: now))
        try await fixture.commit(.append(fixture.base.envelope(Int64(number) * 100, on: channel, ttl: 9999, at: now), rules))
        devices.append(device)
    }
    #expect(try await Set(fixture.store.dueQueues(at: start.after(10))) == [fixture.queue, fixture.sandbox])
    let leased = try await fixture.store.leasePushes(
        of: fixture.queue, limit: 3, at: start.after(10), until: start.after(70))
    #expect(leased.pushes.map(\.device) == [devices[3], devices[2], devices[1]].map(\.serial))
    #expect(leased.areMoreDue)
    let rest = try await fixture.store.leasePushes(
        of: fixture.queue, limit: 3, at: start.after(10), until: start.after(70))
    #expect(rest.pushes.map(\.device) == [devices[0].serial])
    #expect(!rest.areMoreDue)
    #expect(try await fixture.lease(at: start.after(10), in: fixture.sandbox).map(\.device) == [devices[4].serial])
}

private func poisonedNeighbour(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, .none))
    // The last operation fails, because its position is taken.
    let results = try await fixture.commit(fixture.append(2), fixture.append(1))
    #expect(results[0] == .stored(replaced: nil))
    guard case .failed = results[1] else {
        Issue.record("two envelopes have one place")
        return
    }
    #expect(try await fixture.lease().count == 1)
    #expect(try await fixture.lease().isEmpty)
}

private func reportedEnvironment(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    func environment() async throws -> PushEnvironment? {
        try await fixture.store.registration(of: fixture.device)?.profile.address?.environment
    }
    try await fixture.commit(fixture.append(1))
    try await fixture.end(try await fixture.lease()[0], .elsewhere)
    try await fixture.end(try await fixture.lease(in: fixture.sandbox)[0], .handed)
    let revision = try await fixture.store.registration(of: fixture.device)?.addressRevision
    for second in Int64(1)...2 {
        try await fixture.register("aa01", .production, at: start.after(second))
        #expect(try await environment() == .sandbox)
    }
    #expect(try await fixture.store.registration(of: fixture.device)?.addressRevision == revision)
    // The token is accepted in the first environment again, which is the one that the device reports.
    let push = try await fixture.lease(at: start.after(1200), in: fixture.sandbox)[0]
    try await fixture.end(push, .elsewhere, at: start.after(1200))
    try await fixture.end(try await fixture.lease(at: start.after(1200))[0], .handed, at: start.after(1200))
    #expect(try await environment() == .production)
    try await fixture.register("aa01", .sandbox, at: start.after(1201))
    #expect(try await environment() == .sandbox)
    try await fixture.register("aa02", .production, at: start.after(1202))
    #expect(try await environment() == .production)
}

private func parkedFollows(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.setAlertText("{}")
    for position in Int64(1)...2 { try await fixture.commit(fixture.append(position, .alert, urgency: .high)) }
    try await fixture.end(try await fixture.lease()[0], .parked(reason: "BadTopic"))
    let underWay = try await fixture.lease(at: start.after(1))
    #expect(underWay.count == 1)
    try await fixture.register("aa02", .sandbox, at: start.after(2))
    #expect(try await fixture.store.requeueParkedPushes(of: fixture.base.device.app, at: start.after(3)) == 1)
    #expect(try await fixture.lease(at: start.after(3)).isEmpty)
    let token = try PushToken(hexadecimal: "aa02")
    #expect(try await fixture.lease(at: start.after(3), in: fixture.sandbox).map(\.token) == [token])
    // The other push is due when its lease ends.
    #expect(try await fixture.lease(at: start.after(100)).isEmpty)
    let again = try await fixture.lease(at: start.after(100), in: fixture.sandbox)
    #expect(again.map(\.token) == [token] && again.map(\.isElsewhere) == [false])
}

private func confirmedToday(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try await fixture.lease()[0]
    try await fixture.register("aa01", at: start.after(600))
    let state = try await fixture.end(
        push, .tokenDead(reason: "Unregistered", since: start.after(300)), at: start.after(601))
    #expect(state == .scheduled)
    #expect(try await fixture.status == .registered)
}

private func requeuedExpires(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, ttl: 60))
    try await fixture.end(try await fixture.lease()[0], .parked(reason: "BadTopic"))
    #expect(try await fixture.store.requeueParkedPushes(of: fixture.base.device.app, at: start.after(10)) == 1)
    #expect(try await fixture.store.sweepPushes(at: start.after(59), limit: 9))
    #expect(try await fixture.standings(1, at: start.after(59)).first == .state(.scheduled))
    #expect(try await fixture.store.sweepPushes(at: start.after(60), limit: 9))
    #expect(try await fixture.standings(1, at: start.after(60)) == [.state(.expired)])
}

private func copyIsRemoved(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let device = try await fixture.anotherDevice(profile: PushFixture.profile("aa01")).serial
    try await fixture.update("a")
    let subscription = try await fixture.subscribe(1, of: device)
    let numbers = try await fixture.update("a", version: 2, firing: [[fixture.target(subscription)]])
    let effect = Effect.fired(
        fixture.target(subscription), on: try fixture.item("a").name, by: try #require(numbers?.first), at: start)
    let envelope = Envelope(
        id: fixture.base.envelope(1).id, device: device, app: fixture.app, origin: subscription.origin,
        kind: .fired(body: [1], countsBadge: true), acceptedAt: start, expiresAt: start.after(1000))
    let request = WakeRequest(.alert, dueAt: start, isUnconditional: true, needsAlertText: false)
    let results = try await store.commit([.append(envelope, AppendRules(effects: [effect], wake: request))])
    #expect(results == [.stored(replaced: nil)])
    let queue = PushQueue(app: fixture.app, environment: .production)
    func lease() async throws -> LeasedPush {
        let leased = try await store.leasePushes(of: queue, limit: 9, at: start, until: start.after(60))
        return try #require(leased.pushes.first)
    }
    _ = try await store.endPushes([PushEnd(lease(), .parked(reason: "BadTopic"), at: start)])
    #expect(try await store.requeueParkedPushes(of: fixture.app, at: start) == 1)
    let push = try await lease()
    #expect(try await stores.keptPushes(in: store) == [push.lease.work], "it is shown despite any acknowledgement")
    _ = try await store.endPushes([PushEnd(push, .handed, at: start)])
    #expect(try await stores.keptPushes(in: store).isEmpty)
}
