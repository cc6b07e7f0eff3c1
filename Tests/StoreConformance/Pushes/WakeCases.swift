import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = PushFixture.start

extension StoreCase {
    static let wakes: [StoreCase] = [
        StoreCase("a device without a token is not woken", noTokenNoWake),
        StoreCase("many messages make one wake, for all of them", oneWakeForAll),
        StoreCase("of the messages of one commit, the one that is due first wakes", earliestOfOneCommit),
        StoreCase("a connected device has some time, and a message that it acknowledges wakes nobody", presenceHasAWhile),
        StoreCase("a device that always answers is not woken for the next message", busyIsNotWoken),
        StoreCase("a wake is for the first and the last waking message, among many that do not wake", wakeAmongMany),
        StoreCase("a message that wakes nobody is not reported as pushed", quietWasNotPushed),
        StoreCase("a message that is acknowledged before it is written makes no wake", acknowledgedBeforeWritten),
        StoreCase("a wake is removed with the last acknowledgement, and not before", wakeGoesWithTheLast),
        StoreCase("a message that does not wake does not keep a wake", onlySilentOnesAreLeft),
        StoreCase("an expired or withdrawn message causes no wake", endedIsNotWokenFor),
        StoreCase("wakes are twenty minutes apart, with any number of messages", wakesAreApart),
        StoreCase("after three unanswered wakes the next ones are rarer, until one is answered", unansweredWakesAreRarer),
        StoreCase(
            "a device that connects is woken as usual again, even if it had nothing to acknowledge", comingEndsTheSlowPace),
        StoreCase("a device that registers again, or is resumed, is woken as usual again", registeringEndsTheSlowPace),
        StoreCase("messages that wait when a device registers its token wake it", registrationWakes),
        StoreCase("a suspended device is not woken, and its messages wake it when it is resumed", suspensionHolds),
        StoreCase("a wake follows its device to another environment", wakeFollowsTheDevice),
        StoreCase("a wake survives a restart", wakeSurvives),
    ]
}

private func noTokenNoWake(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores, token: nil)
    try await fixture.commit(fixture.append(1))
    #expect(try await fixture.store.dueQueues(at: start.after(1_000)).isEmpty)
    #expect(try await fixture.standings(1).isEmpty)
}

private func oneWakeForAll(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    for position in Int64(1)...10 { try await fixture.commit(fixture.append(position, ttl: 1000 + position)) }
    #expect(try await fixture.store.dueQueues(at: start) == [fixture.queue])
    let pushes = try await fixture.lease()
    try #require(pushes.count == 1)
    #expect(pushes[0].content == .wake && pushes[0].device == fixture.device && pushes[0].attempt == 1)
    #expect(try pushes[0].token == PushToken(hexadecimal: "aa01"))
    #expect(pushes[0].expiresAt == start.after(1010), "as long as the latest message lasts")
    #expect(try await fixture.lease(at: start.after(1)).isEmpty)
    for position in Int64(1)...10 { #expect(try await fixture.standings(position) == [.state(.leased)]) }
    #expect(try await fixture.end(pushes[0], .handed) == .handed)
    for position in [Int64(1), 10] {
        #expect(try await fixture.standings(position) == [.state(.handed), .state(.scheduled)], "and again in a while")
    }
}

private func earliestOfOneCommit(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(
        fixture.append(1, dueAt: start.after(10)), fixture.append(2, dueAt: start.after(3)),
        fixture.append(3, dueAt: start.after(7)))
    #expect(try await !fixture.isDue(at: start.after(3).adding(milliseconds: -1)))
    #expect(try await fixture.isDue(at: start.after(3)))
    // A message that is acknowledged in its own commit does not change the time of the wake.
    try await fixture.commit(fixture.append(4), fixture.acknowledge(4), fixture.acknowledge(2))
    #expect(try await fixture.isDue(at: start.after(3)))
    try await fixture.commit(fixture.acknowledge(1), fixture.acknowledge(3))
    #expect(try await !fixture.isDue(at: start.after(100)))
}

private func presenceHasAWhile(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, dueAt: start.after(10)))
    #expect(try await !fixture.isDue(at: start.after(9)))
    #expect(try await fixture.lease(at: start.after(9)).isEmpty)
    #expect(try await fixture.isDue(at: start.after(10)))
    try await fixture.commit(fixture.acknowledge(1))
    #expect(try await !fixture.isDue(at: start.after(10)))
    #expect(try await fixture.lease(at: start.after(10)).isEmpty)
    // A device that disconnected meanwhile is woken at once for later messages.
    try await fixture.commit(fixture.append(2, dueAt: start.after(10)))
    try await fixture.commit(fixture.append(3))
    #expect(try await fixture.lease(at: start).count == 1)
}

private func busyIsNotWoken(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, dueAt: start.after(10)))
    for second in Int64(1)...30 {
        let now = start.after(second)
        try await fixture.commit(fixture.append(second + 1, at: now, dueAt: now.after(10)))
        try await fixture.commit(fixture.acknowledge(second, at: now))
        #expect(try await fixture.lease(at: now.adding(milliseconds: 500)).isEmpty, "second \(second)")
    }
    #expect(try await fixture.lease(at: start.after(39)).isEmpty)
    #expect(try await fixture.lease(at: start.after(40)).count == 1, "it answered no more")
    // A device that disconnects after its answer is woken at once.
    try await fixture.commit(fixture.acknowledge(31, at: start.after(41)))
    let other = try await PushFixture(stores)
    try await other.commit(other.append(1, dueAt: start.after(10)), other.append(2, dueAt: start.after(10)))
    try await other.commit(other.acknowledge(1, at: start.after(1)))
    try await other.commit(other.append(3, at: start.after(2)))
    #expect(try await other.lease(at: start.after(2)).count == 1)
}

private func wakeAmongMany(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    for position in Int64(1)...400 {
        try await fixture.commit(
            fixture.append(position, position == 40 || position == 60 ? .background : .none, ttl: position))
    }
    var push = try #require(try await fixture.lease().first)
    // The last message that wakes the device is before more messages than one search reads.
    #expect(push.expiresAt == start.after(40))
    #expect(try await fixture.standings(40) == [.state(.leased)])
    #expect(try await fixture.standings(60) == [.state(.leased)])
    for quiet in [Int64(39), 300] { #expect(try await fixture.standings(quiet).isEmpty) }
    try await fixture.end(push, .handed)
    try await fixture.commit(fixture.acknowledge(40), fixture.acknowledge(60))
    #expect(try await fixture.lease(at: start.after(1300)).isEmpty)
    try await fixture.register("aa02", at: start.after(1300))
    #expect(try await !fixture.isDue(at: start.after(1300)), "the others wake nobody, for any address")
    try await fixture.commit(
        fixture.append(401, at: start.after(1300), ttl: 500), fixture.append(402, .none, at: start.after(1300)))
    push = try #require(try await fixture.lease(at: start.after(1300)).first)
    #expect(push.expiresAt == start.after(1800))
}

private func quietWasNotPushed(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1), fixture.append(2, .none), fixture.append(3))
    try await fixture.hand(at: start)
    #expect(try await fixture.standings(1).first == .state(.handed))
    #expect(try await fixture.standings(2).isEmpty)
    #expect(try await fixture.standings(3).first == .state(.handed))
    try await fixture.commit(fixture.acknowledge(1), fixture.acknowledge(2))
    #expect(try await fixture.standings(1) == [.state(.handed)], "also when it is over")
    #expect(try await fixture.standings(2).isEmpty)
}

private func acknowledgedBeforeWritten(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    let envelope = fixture.base.envelope(1)
    let rules = AppendRules(wake: WakeRequest(.background, dueAt: start))
    _ = try await fixture.commit(
        .record(envelope, rules, FinalOutcome(.acknowledged, at: start)), fixture.append(2), fixture.acknowledge(2))
    #expect(try await fixture.store.dueQueues(at: start.after(100)).isEmpty)
}

private func wakeGoesWithTheLast(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1), fixture.append(2))
    try await fixture.commit(fixture.acknowledge(1))
    #expect(try await fixture.isDue(at: start))
    try await fixture.commit(fixture.acknowledge(2))
    #expect(try await !fixture.isDue(at: start))
    #expect(try await fixture.standings(2).isEmpty)
}

private func onlySilentOnesAreLeft(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1), fixture.append(2, .none))
    try await fixture.commit(fixture.acknowledge(1))
    #expect(try await fixture.lease().isEmpty)
    #expect(try await !fixture.isDue(at: start), "it was checked, and is done")
    try await fixture.commit(fixture.append(3))
    #expect(try await fixture.lease().count == 1)
}

private func endedIsNotWokenFor(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, ttl: 60))
    #expect(try await fixture.lease(at: start.after(60)).isEmpty)
    let cancelled = InboxOperation.finish(
        fixture.base.envelope(2).id, device: nil, FinalOutcome(.cancelled, at: start))
    try await fixture.commit(fixture.append(2), cancelled)
    try await fixture.commit(fixture.append(3))
    try await fixture.commit(
        .finish(fixture.base.envelope(3).id, device: nil, FinalOutcome(.cancelled, at: start)))
    #expect(try await fixture.lease(at: start.after(61)).isEmpty)
}

private func wakesAreApart(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    var wakes = 0
    for minute in Int64(0)..<20 {
        let now = start.after(60 * minute)
        if minute % 2 == 0 { try await fixture.commit(fixture.append(minute + 1, at: now)) }
        for push in try await fixture.lease(at: now) {
            wakes += 1
            try await fixture.end(push, .handed, at: now)
        }
        if minute % 3 == 0 { try await fixture.commit(fixture.acknowledge(minute / 3 * 2 + 1, at: now)) }
    }
    #expect(wakes == 1)
    #expect(try await !fixture.isDue(at: start.after(1199)))
    #expect(try await fixture.lease(at: start.after(1200)).count == 1)
}

private func unansweredWakesAreRarer(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, ttl: 1_000_000))
    var now = start
    for gap in [Int64(20), 20, 60, 240, 1440, 1440] {
        try await fixture.hand(at: now)
        #expect(try await !fixture.isDue(at: now.after(60 * gap - 1)), "after \(gap)")
        now = now.after(60 * gap)
        #expect(try await fixture.isDue(at: now), "after \(gap)")
    }
    try await fixture.hand(at: now)
    // The device answers. Its pace is then that of a device that was woken once.
    try await fixture.commit(fixture.append(2, at: now, ttl: 1_000_000))
    try await fixture.commit(fixture.acknowledge(1, at: now))
    try await fixture.commit(fixture.acknowledge(2, at: now))
    try await fixture.commit(fixture.append(3, at: now, ttl: 1_000_000))
    #expect(try await !fixture.isDue(at: now.after(1199)))
    #expect(try await fixture.isDue(at: now.after(1200)))
}

private func comingEndsTheSlowPace(_ stores: any StoreMaker) async throws {
    for isKnown in [true, false] {
        var fixture = try await PushFixture(stores)
        try await fixture.commit(fixture.append(1, ttl: 1_000_000))
        var now = start
        for minutes in [Int64(20), 20, 60, 240] {
            try await fixture.hand(at: now)
            try await fixture.store.devicesCame([fixture.device], at: start.after(-1))
            now = now.after(60 * minutes)
        }
        // After each connection, the device was woken at the usual pace.
        #expect(try await fixture.isDue(at: now))
        for minutes in [Int64(20), 60, 240] {
            try await fixture.hand(at: now)
            now = now.after(60 * minutes)
        }
        try await fixture.hand(at: now)
        let came = now.after(13 * 3600)
        #expect(try await !fixture.isDue(at: came))
        if !isKnown {
            guard let store = try await stores.restart(fixture.store) else { return }
            fixture = fixture.again(store)
        }
        try await fixture.store.devicesCame([DeviceSerial(999), fixture.device], at: came)
        #expect(try await fixture.isDue(at: came))
        try await fixture.hand(at: came)
        #expect(try await !fixture.isDue(at: came.after(1199)))
        #expect(try await fixture.isDue(at: came.after(1200)))
    }
}

private func registeringEndsTheSlowPace(_ stores: any StoreMaker) async throws {
    enum Way: CaseIterable { case token, environment, resumption }
    for way in Way.allCases {
        let fixture = try await PushFixture(stores)
        try await fixture.commit(fixture.append(1, ttl: 1_000_000))
        for seconds in [Int64(0), 1200, 2400] { try await fixture.hand(at: start.after(seconds)) }
        #expect(try await !fixture.isDue(at: start.after(2400 + 3599)), "three that were not answered")
        let now = start.after(2401)
        var queue = fixture.queue
        switch way {
        case .token: try await fixture.register("aa02", at: now)
        case .environment:
            try await fixture.register("aa02", .sandbox, at: now)
            queue = fixture.sandbox
        case .resumption:
            try await fixture.change(at: now) { RegistrationRules.suspend($0, because: .byOperator, at: now) }
            try await fixture.change(at: now) { RegistrationRules.resume($0, at: now) }
        }
        // Each wake is due twenty minutes after the one before.
        for seconds in [Int64(3600), 4800, 6000] {
            let due = start.after(seconds)
            #expect(try await !fixture.store.dueQueues(at: due.after(-1)).contains(queue), "\(way), \(seconds)")
            let pushes = try await fixture.lease(at: due, in: queue)
            #expect(pushes.count == 1, "\(way), \(seconds)")
            for push in pushes { try await fixture.end(push, .handed, at: due) }
        }
    }
}

private func registrationWakes(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores, token: nil)
    try await fixture.commit(fixture.append(1))
    try await fixture.register("aa01")
    #expect(try await fixture.lease().count == 1)
    let other = try await PushFixture(stores, token: nil)
    try await other.commit(other.append(1, .none))
    try await other.register("aa01")
    #expect(try await other.lease().isEmpty)
}

private func suspensionHolds(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    try await fixture.change { RegistrationRules.suspend($0, because: .byOperator, at: start) }
    try await fixture.commit(fixture.append(2))
    #expect(try await !fixture.isDue(at: start))
    #expect(try await fixture.lease().isEmpty)
    #expect(try await fixture.standings(1) == [.suspended])
    #expect(try await fixture.standings(2) == [.suspended])
    try await fixture.change { RegistrationRules.resume($0, at: start) }
    #expect(try await fixture.lease().count == 1)
}

private func wakeFollowsTheDevice(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    try await fixture.register("aa02", .sandbox)
    #expect(try await fixture.store.dueQueues(at: start) == [fixture.sandbox])
    #expect(try await fixture.lease().isEmpty)
    let pushes = try await fixture.lease(in: fixture.sandbox)
    #expect(try pushes.map(\.token) == [PushToken(hexadecimal: "aa02")])
}

private func wakeSurvives(_ stores: any StoreMaker) async throws {
    var fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, ttl: 1_000_000))
    try await fixture.hand(at: start)
    try await fixture.hand(at: start.after(1200))
    try await fixture.hand(at: start.after(2400))
    guard let store = try await stores.restart(fixture.store) else { return }
    fixture = fixture.again(store)
    #expect(try await !fixture.isDue(at: start.after(2400 + 3599)))
    let pushes = try await fixture.lease(at: start.after(2400 + 3600))
    try #require(pushes.count == 1)
    // The server is killed while the push is under way. The same push is leased again after the end of its lease.
    guard let later = try await stores.restart(fixture.store) else { return }
    fixture = fixture.again(later)
    let leaseEnd = start.after(2400 + 3600 + LeasedPush.leaseSeconds)
    #expect(try await fixture.lease(at: leaseEnd.after(-1)).isEmpty)
    let again = try await fixture.lease(at: leaseEnd)
    #expect(again.map(\.id) == pushes.map(\.id))
    #expect(again.map(\.attempt) == [2])
    try await fixture.commit(fixture.acknowledge(1, at: leaseEnd))
    #expect(try await fixture.lease(at: leaseEnd.after(1_000_000)).isEmpty)
}
