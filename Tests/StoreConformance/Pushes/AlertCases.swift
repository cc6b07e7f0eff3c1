import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = PushFixture.start

extension StoreCase {
    static let alerts: [StoreCase] = [
        StoreCase("an app without a text is woken instead", noTextNoAlert),
        StoreCase("an alert is for its message, and is removed with it", alertForItsMessage),
        StoreCase("one alert is sent per second, twenty wait, and the others become one wake", alertsAreBounded),
        StoreCase("alerts of one commit have the limit and the pace of alerts of many", alertsOfOneCommit),
        StoreCase("collected alerts are not sent at once", gatheredAlerts),
        StoreCase("collected alerts are sent one a second out of several batches, too", gatheredInBatches),
        StoreCase("alerts of a suspended device wait, and are sent when it is resumed", suspendedAlerts),
        StoreCase("a wake replaces an alert that has no text any more", alertWithoutText),
        StoreCase("a wake replaces a parked alert that nobody requeued", parkedAlertIsOver),
        StoreCase("alerts count for the badge, until it is reset", alertsCount),
        StoreCase("an alert whose message was replaced is cancelled", replacedAlert),
    ]
}

func withText(_ stores: any StoreMaker) async throws -> PushFixture {
    let fixture = try await PushFixture(stores)
    try await fixture.setAlertText("{}")
    return fixture
}

private func noTextNoAlert(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1, .alert))
    #expect(try await fixture.lease().map(\.content) == [.wake])
    try await fixture.setAlertText("{}")
    try await fixture.commit(fixture.append(2, .alert))
    #expect(try await fixture.lease().count == 1)
    try await fixture.setAlertText(nil)
    try await fixture.commit(fixture.append(3, .alert))
    #expect(try await fixture.lease(at: start.after(5)).isEmpty, "the wake under way is for this one, too")
}

private func alertForItsMessage(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, ttl: 500, urgency: .high, topic: "t"), fixture.append(2, .none))
    let pushes = try await fixture.lease()
    try #require(pushes.count == 1)
    var envelope = fixture.base.envelope(1, ttl: 500)
    envelope.urgency = .high
    #expect(pushes[0].content == .alert(envelope, topic: "t", badge: 1))
    #expect(pushes[0].expiresAt == start.after(500))
    #expect(try await fixture.standings(1) == [.state(.leased)])
    #expect(try await fixture.standings(2).isEmpty)
    try await fixture.end(pushes[0], .again(at: start.after(30), isSpent: true, reason: "x"))
    try await fixture.commit(fixture.acknowledge(1))
    #expect(try await fixture.lease(at: start.after(30)).isEmpty)
    #expect(try await fixture.standings(1) == [.state(.cancelled)])
    #expect(try await fixture.lease(at: start.after(5000)).isEmpty, "no wake beside it")
}

private func alertsAreBounded(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    for position in Int64(1)...30 { try await fixture.commit(fixture.append(position, .alert, urgency: .high)) }
    var alerts: [Int64] = []
    var wakes = 0
    for second in Int64(0)..<40 {
        let pushes = try await fixture.lease(at: start.after(second))
        for push in pushes {
            switch push.content {
            case .alert(let envelope, _, _): alerts.append(envelope.position)
            case .wake: wakes += 1
            }
            try await fixture.end(push, .handed, at: start.after(second))
        }
        #expect(pushes.filter { $0.content != .wake }.count <= 1, "second \(second)")
    }
    #expect(alerts == Array(1...20))
    #expect(wakes == 1)
    // There is space again.
    try await fixture.commit(fixture.append(31, .alert, at: start.after(50), urgency: .high))
    #expect(try await fixture.lease(at: start.after(50)).count == 1)
}

private func alertsOfOneCommit(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    _ = try await fixture.store.commit((Int64(1)...30).map { fixture.append($0, .alert, urgency: .high) })
    var alerts: [Int64] = []
    var wakes = 0
    for second in Int64(0)..<40 {
        let now = start.after(second)
        let pushes = try await fixture.lease(at: now)
        for push in pushes {
            switch push.content {
            case .alert(let envelope, _, _): alerts.append(envelope.position)
            case .wake: wakes += 1
            }
            try await fixture.end(push, .handed, at: now)
        }
        #expect(pushes.count { $0.content != .wake } <= 1, "second \(second)")
    }
    #expect(alerts == Array(1...20))
    #expect(wakes == 1)
}

private func gatheredAlerts(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    for position in Int64(1)...3 { try await fixture.commit(fixture.append(position, .alert, urgency: .high)) }
    let later = start.after(600)
    #expect(try await fixture.lease(at: later).count == 1)
    #expect(try await fixture.lease(at: later).isEmpty)
    #expect(try await fixture.lease(at: later.after(1)).count == 1)
    #expect(try await fixture.lease(at: later.after(2)).count == 1)
}

private func gatheredInBatches(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    for position in Int64(1)...7 { try await fixture.commit(fixture.append(position, .alert, urgency: .high)) }
    let later = start.after(600)
    var notified: [Int64] = []
    for second in Int64(0)..<7 {
        var now: [LeasedPush] = []
        for _ in 0..<10 { now += try await fixture.lease(at: later.after(second), limit: 2) }
        #expect(now.count == 1, "second \(second)")
        for push in now {
            guard case .alert(_, _, let badge) = push.content else { continue }
            notified.append(Int64(badge))
        }
    }
    #expect(notified == Array(1...7), "each counts when it goes out")
}

private func suspendedAlerts(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, urgency: .high))
    try await fixture.change { RegistrationRules.suspend($0, because: .byOperator, at: start) }
    #expect(try await !fixture.isDue(at: start.after(10)))
    #expect(try await fixture.lease(at: start.after(10)).isEmpty)
    try await fixture.change(at: start.after(20)) { RegistrationRules.resume($0, at: start.after(20)) }
    #expect(try await fixture.lease(at: start.after(20)).count == 1)
}

private func replacedAlert(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, urgency: .high, topic: "t"))
    try await fixture.commit(fixture.append(2, .alert, at: start.after(1), urgency: .high, topic: "t"))
    let pushes = try await fixture.lease(at: start.after(3)) + fixture.lease(at: start.after(5))
    let positions = pushes.map { push -> Int64 in
        if case .alert(let envelope, _, _) = push.content { envelope.position } else { 0 }
    }
    #expect(positions == [2])
    #expect(try await fixture.standings(1) == [.state(.cancelled)])
}

private func alertsCount(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    func badges(_ positions: ClosedRange<Int64>, at now: Timestamp) async throws -> [Int] {
        for position in positions { try await fixture.commit(fixture.append(position, .alert, at: now, urgency: .high)) }
        var badges: [Int] = []
        for second in Int64(0)..<5 {
            for push in try await fixture.lease(at: now.after(second)) {
                if case .alert(_, _, let badge) = push.content { badges.append(badge) }
                try await fixture.end(push, .handed, at: now.after(second))
            }
        }
        return badges
    }
    #expect(try await badges(1...3, at: start) == [1, 2, 3])
    #expect(try await fixture.store.resetBadge(of: fixture.device))
    #expect(try await badges(4...5, at: start.after(100)) == [1, 2])
    #expect(try await !fixture.store.resetBadge(of: DeviceSerial(999)))
}

private func alertWithoutText(_ stores: any StoreMaker) async throws {
    let fixture = try await withText(stores)
    try await fixture.commit(fixture.append(1, .alert, urgency: .high))
    try await fixture.setAlertText(nil)
    #expect(try await fixture.lease().map(\.content) == [.wake])
    #expect(try await fixture.standings(1) == [.state(.cancelled), .state(.leased)])
}

private func parkedAlertIsOver(_ stores: any StoreMaker) async throws {
    var limits = InboxLimits()
    limits.outcomeRetentionSeconds = 1000
    let fixture = try await PushFixture(stores, StoreSettings(inbox: limits))
    try await fixture.setAlertText("{}")
    try await fixture.commit(fixture.append(1, .alert, urgency: .high))
    try await fixture.end(try await fixture.lease()[0], .parked(reason: "BadTopic"))
    #expect(try await fixture.store.sweepPushes(at: start.after(999), limit: 10))
    #expect(try await !fixture.isDue(at: start.after(999)))
    #expect(try await fixture.store.sweepPushes(at: start.after(1000), limit: 10))
    #expect(try await fixture.lease(at: start.after(1000)).map(\.content) == [.wake])
}
