import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = PushFixture.start

extension StoreCase {
    static let unacceptedAlerts: [StoreCase] = [
        StoreCase(
            "an alert that a dead token refused goes to the next one, and a wake replaces later ones", deadToken),
        StoreCase("an acknowledged or expired message is not sent to the next token", overMeanwhile),
        StoreCase(
            "of the refused alerts the newest twenty are sent, one a second, and a wake replaces the others", newest),
        StoreCase("an alert of a token of another app goes to another token, and not to the same", otherApp),
        StoreCase("an answer about a token of another app does not concern the next token", otherAppLate),
        StoreCase("an alert whose token was taken goes to the next one", tokenTaken),
        StoreCase("an alert without credentials goes to an environment with credentials", unconfigured),
        StoreCase("a refused alert waits as long as its message", keptAsLong),
        StoreCase("a wake of a token of another app is sent soon to the next one", parkedWake),
        StoreCase("a wake replaces alerts that are older than the earlier wake of the device", wakeTellsOfOlder),
    ]
}

private let dead = PushEnd.Verdict.tokenDead(reason: "Unregistered", since: nil)

private func positions(_ pushes: [LeasedPush]) -> [Int64] {
    pushes.map { push in if case .alert(let envelope, _, _) = push.content { envelope.position } else { 0 } }
}

private func deadToken(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, urgency: .high))
    let first = try await fixture.lease()[0]
    #expect(try await fixture.end(first, dead) == .rejected)
    #expect(try await fixture.status == .suspended(.tokenDead))
    #expect(try await fixture.standings(1) == [.state(.rejected), .suspended])
    // This message arrives while the device cannot be reached.
    try await fixture.commit(fixture.append(2, .alert, urgency: .high))
    #expect(try await fixture.lease(at: start.after(60)).isEmpty)
    try await fixture.register("aa02", at: start.after(100))
    let pushes = try await fixture.lease(at: start.after(100))
    #expect(positions(pushes) == [1, 0])
    #expect(pushes[0].id == first.id && pushes[0].attempt == 1)
    #expect(try pushes[0].token == PushToken(hexadecimal: "aa02"))
    guard case .alert(_, _, let badge) = pushes[0].content else { return }
    #expect(badge == 1, "it counts once")
    try await fixture.end(pushes[0], .handed, at: start.after(101))
    try await fixture.end(pushes[1], .handed, at: start.after(101))
    #expect(try await fixture.standings(1) == [.state(.handed)])
    #expect(try await fixture.standings(2).first == .state(.handed))
    // Another token does not cause further attempts of accepted pushes.
    try await fixture.register("aa03", at: start.after(200))
    #expect(try await fixture.lease(at: start.after(5000)).allSatisfy { $0.content == .wake })
}

private func overMeanwhile(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    for (position, ttl) in [(1, 1000), (2, 20), (3, 1000)] as [(Int64, Int64)] {
        try await fixture.commit(fixture.append(position, .alert, ttl: ttl, urgency: .high))
    }
    var pushes: [LeasedPush] = []
    for second in Int64(0)..<3 { pushes += try await fixture.lease(at: start.after(second)) }
    for push in pushes { try await fixture.end(push, dead, at: start.after(3)) }
    try await fixture.commit(fixture.acknowledge(1, at: start.after(4)))
    try await fixture.register("aa02", at: start.after(30))
    var sent: [Int64] = []
    for second in Int64(30)..<40 { sent += positions(try await fixture.lease(at: start.after(second))) }
    #expect(sent == [3])
}

private func newest(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    for position in Int64(1)...25 {
        let now = start.after(position)
        try await fixture.commit(fixture.append(position, .alert, at: now, urgency: .high))
        let pushes = try await fixture.lease(at: now)
        #expect(positions(pushes) == [position])
        for push in pushes { try await fixture.end(push, otherTopic, at: now) }
    }
    let back = start.after(100)
    try await fixture.register("aa02", at: back)
    var alerts: [Int64] = []
    var wakes = 0
    for second in Int64(0)..<40 {
        let some = positions(try await fixture.lease(at: back.after(second)))
        alerts += some.filter { $0 > 0 }
        wakes += some.count { $0 == 0 }
        #expect(some.count { $0 > 0 } <= 1, "second \(second)")
        if second == 0 { #expect(some.contains(6)) }
    }
    #expect(alerts == Array(6...25))
    #expect(wakes == 1)
    #expect(try await fixture.standings(5, at: back) == [.state(.cancelled), .state(.leased)])
}

private let otherTopic = PushEnd.Verdict.parked(reason: "DeviceTokenNotForTopic", isOfAddress: true)

private func otherApp(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, urgency: .high))
    try await fixture.end(try await fixture.lease()[0], otherTopic)
    try await fixture.commit(fixture.append(2, .alert, at: start.after(5), urgency: .high))
    try await fixture.end(try await fixture.lease(at: start.after(5))[0], .parked(reason: "BadTopic"), at: start.after(5))
    try await fixture.register("aa01", at: start.after(80_000))
    #expect(try await fixture.standings(1) == [.state(.parked)])
    try await fixture.register("aa02", at: start.after(90_000))
    #expect(positions(try await fixture.lease(at: start.after(90_000))) == [1])
    #expect(try await fixture.standings(2) == [.state(.parked)], "another token changes nothing about it")
}

private func otherAppLate(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, urgency: .high))
    let push = try await fixture.lease()[0]
    try await fixture.register("aa02", at: start.after(1))
    #expect(try await fixture.end(push, otherTopic, at: start.after(2)) == .scheduled)
    #expect(positions(try await fixture.lease(at: start.after(2))) == [1])
}

private func tokenTaken(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, urgency: .high), fixture.append(2, .alert, urgency: .high))
    let underWay = try await fixture.lease()
    try #require(underWay.count == 1)
    var profile = DeviceProfile()
    profile.address = try PushFixture.profile("aa01").address
    let thief = NewDevice(DeviceID(Bytes16(high: 9, low: 9)), app: try StoreFixture.appID, profile: profile)
    _ = try #require(try await fixture.base.insert(thief, secret: [9, 9]))
    #expect(try await fixture.status == .suspended(.tokenTaken))
    try await fixture.end(underWay[0], dead, at: start.after(2))
    #expect(try await fixture.lease(at: start.after(10)).isEmpty)
    try await fixture.register("aa02", at: start.after(20))
    var sent: [Int64] = []
    for second in Int64(20)..<25 { sent += positions(try await fixture.lease(at: start.after(second))) }
    #expect(sent == [1, 2])
}

private func unconfigured(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    for position in Int64(1)...3 { try await fixture.commit(fixture.append(position, .alert, urgency: .high)) }
    // The push queue of production is not leased, because it has no push credentials.
    try await fixture.register("aa01", .sandbox, at: start.after(100))
    var sent: [Int64] = []
    for second in Int64(100)..<110 {
        let pushes = try await fixture.lease(at: start.after(second), in: fixture.sandbox)
        #expect(pushes.count <= 1)
        sent += positions(pushes)
    }
    #expect(sent == [1, 2, 3])
    #expect(try await fixture.lease(at: start.after(110)).isEmpty)
}

private func keptAsLong(_ stores: any StoreMaker) async throws {
    var limits = InboxLimits()
    limits.outcomeRetentionSeconds = 1000
    let fixture = try await PushFixture(stores, StoreSettings(inbox: limits))
    try await fixture.setAlertText("{}")
    try await fixture.commit(fixture.append(1, .alert, ttl: 5000, urgency: .high))
    try await fixture.end(try await fixture.lease()[0], dead)
    #expect(try await fixture.store.sweepPushes(at: start.after(4000), limit: 10))
    try await fixture.register("aa02", at: start.after(4000))
    #expect(positions(try await fixture.lease(at: start.after(4000))) == [1])
}

private func parkedWake(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    try await fixture.end(try await fixture.lease()[0], otherTopic)
    #expect(try await fixture.lease(at: start.after(2000)).isEmpty)
    try await fixture.register("aa02", at: start.after(2000))
    #expect(try await fixture.lease(at: start.after(2000)).map(\.content) == [.wake])
}

private func wakeTellsOfOlder(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    for position in Int64(1)...25 {
        let now = start.after(position)
        try await fixture.commit(fixture.append(position, .alert, at: now, urgency: .high))
        for push in try await fixture.lease(at: now) { try await fixture.end(push, otherTopic, at: now) }
    }
    // The device is woken for a later message, and acknowledges it. No message that wakes the device is left.
    let woken = start.after(26)
    try await fixture.commit(fixture.append(30, at: woken))
    let wake = try #require(try await fixture.lease(at: woken).first)
    #expect(wake.content == .wake)
    try await fixture.commit(fixture.acknowledge(30, at: woken))
    try await fixture.end(wake, .handed, at: woken)
    let back = start.after(100)
    try await fixture.register("aa02", at: back)
    #expect(try await fixture.standings(1, at: back) == [.state(.cancelled), .state(.scheduled)])
    let due = woken.after(WakePace.shortestSeconds)
    #expect(try await fixture.lease(at: due).contains { $0.content == .wake })
}
