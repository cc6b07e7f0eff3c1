import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = PushFixture.start

extension StoreCase {
    static let formerUserWakes: [StoreCase] = [
        StoreCase("a parked wake of a former user leaves nothing due, and the next is as usual", parkedOfFormerUser),
        StoreCase("a wake with another user keeps its pace", paceOfFormerUser),
        StoreCase("a pending wake of a former user is ended by its answer", underWayForFormerUser),
        StoreCase("a wake of a former user that waits for a retry makes space for the next", retriedForFormerUser),
    ]
}

/// A device with a push token and a channel of its user.
private struct SignedIn {
    let pushes: PushFixture
    let channel: PushChannel

    init(_ stores: any StoreMaker) async throws {
        pushes = try await PushFixture(stores)
        let user = try #require(UserID("ada"))
        try await Self.say(.signedIn(user), pushes, at: start)
        channel = try await StoreFixture.open(3, of: pushes.base.device, in: pushes.store)
    }

    private static func say(_ claim: UserClaim, _ pushes: PushFixture, at now: Timestamp) async throws {
        let result = try await pushes.store.changeRegistration(of: pushes.device, at: now) { current in
            .reports(current.profile, confirms: false, user: claim)
        }
        _ = try #require(result).get()
    }

    /// Sends a message for the user, which wakes the device.
    func append(_ position: Int64, at now: Timestamp = start) async throws {
        let envelope = pushes.base.envelope(position, on: channel, ttl: 1_000_000, at: now)
        try await pushes.commit(.append(envelope, AppendRules(wake: WakeRequest(.background, dueAt: now))))
    }

    /// Sends a message for the device and any user, which wakes the device.
    func appendForAnyone(_ position: Int64, at now: Timestamp) async throws {
        try await pushes.commit(pushes.append(position, at: now, ttl: 1_000_000))
    }

    func signOut(at now: Timestamp) async throws { try await Self.say(.signedOut, pushes, at: now) }

    func leaseOne(at now: Timestamp) async throws -> LeasedPush {
        let leased = try await pushes.lease(at: now)
        try #require(leased.count == 1)
        return leased[0]
    }
}

private let afterAll = start.after(500_000)

private func parkedOfFormerUser(_ stores: any StoreMaker) async throws {
    let world = try await SignedIn(stores)
    let pushes = world.pushes
    try await world.append(1)
    try await pushes.end(world.leaseOne(at: start), .parked(reason: "BadTopic"))
    #expect(try await pushes.isDue(at: afterAll), "it is tried again a day later")
    try await world.signOut(at: start.after(1))
    #expect(try await !pushes.isDue(at: afterAll))
    #expect(try await pushes.store.parkedPushes(of: pushes.base.device.app, limit: 9).isEmpty)
    try await world.appendForAnyone(2, at: start.after(2))
    try await pushes.hand(at: start.after(2))
    #expect(try await !pushes.isDue(at: start.after(1201)))
    #expect(try await pushes.isDue(at: start.after(1202)))
}

private func paceOfFormerUser(_ stores: any StoreMaker) async throws {
    let world = try await SignedIn(stores)
    let pushes = world.pushes
    try await world.append(1)
    try await pushes.end(world.leaseOne(at: start), .parked(reason: "BadTopic"))
    try await world.append(2, at: start.after(1))
    try await pushes.hand(at: start.after(1))
    #expect(try await pushes.isDue(at: start.after(1201)))
    try await world.signOut(at: start.after(2))
    #expect(try await !pushes.isDue(at: afterAll))
    try await world.appendForAnyone(3, at: start.after(3))
    #expect(try await !pushes.isDue(at: start.after(1200)), "twenty minutes after the last")
    #expect(try await pushes.isDue(at: start.after(1201)))
}

private func underWayForFormerUser(_ stores: any StoreMaker) async throws {
    for isWokenAgain in [true, false] {
        let world = try await SignedIn(stores)
        let pushes = world.pushes
        try await world.append(1)
        let push = try await world.leaseOne(at: start)
        try await world.signOut(at: start.after(1))
        if isWokenAgain {
            try await world.appendForAnyone(2, at: start.after(2))
            #expect(try await pushes.lease(at: start.after(3)).isEmpty, "one is under way")
        }
        #expect(try await pushes.end(push, .handed, at: start.after(4)) == .handed)
        #expect(try await pushes.isDue(at: afterAll) == isWokenAgain)
        if !isWokenAgain { try await world.appendForAnyone(2, at: start.after(5)) }
        #expect(try await !pushes.isDue(at: start.after(1203)), "twenty minutes after the last")
        #expect(try await pushes.isDue(at: start.after(1204)))
    }
}

private func retriedForFormerUser(_ stores: any StoreMaker) async throws {
    let world = try await SignedIn(stores)
    let pushes = world.pushes
    try await world.append(1)
    let push = try await world.leaseOne(at: start)
    try await pushes.end(push, .again(at: start.after(30), isSpent: true, reason: "x"))
    try await world.signOut(at: start.after(1))
    #expect(try await !pushes.isDue(at: afterAll))
    try await world.appendForAnyone(2, at: start.after(2))
    #expect(try await world.leaseOne(at: start.after(2)).id != push.id)
}
