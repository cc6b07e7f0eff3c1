import CarillonCore
import CarillonWire
import TestStores
import Testing

@testable import CarillonServer

/// The state of inboxes, connections and pushes that a home keeps only in memory, after a restart and without a restart.
@Suite(.timeLimit(.minutes(5)))
struct RestartMemoryTests {
    private final class Session: LiveSession {
        func offer(_ envelope: Envelope) {}
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
        func finished(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) {}
    }

    // MARK: Alerts

    @Test(arguments: [false, true])
    func `after a restart one alert that is due does not wait for the pace`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        try await world.setAlertText()
        for _ in 0..<3 { try await world.send(.high) }
        world.advance(seconds: 600)
        #expect(try await world.lease(limit: 1).count == 1)
        if isRestarted { try await world.restart() }
        #expect(try await world.lease().count == (isRestarted ? 1 : 0))
        #expect(try await world.lease().isEmpty, "the pace counts again")
        world.advance(seconds: 1)
        #expect(try await world.lease().count == 1)
        world.advance(seconds: 1)
        #expect(try await world.lease().count == (isRestarted ? 0 : 1), "there were three")
    }

    @Test(arguments: [false, true])
    func `after a restart an alert does not wait for the pace of an alert that was sent`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        try await world.setAlertText()
        try await world.send(.high)
        try await world.hand()
        if isRestarted { try await world.restart() }
        try await world.send(.high)
        #expect(try await world.lease().count == (isRestarted ? 1 : 0))
        world.advance(seconds: 1)
        #expect(try await world.lease().count == (isRestarted ? 0 : 1))
    }

    @Test(arguments: [false, true])
    func `the pace of alerts that wait is the same after a restart`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        try await world.setAlertText()
        for _ in 0..<2 { try await world.send(.high) }
        if isRestarted { try await world.restart() }
        try await world.send(.high)
        for second in 0..<3 {
            #expect(try await world.lease().count == 1, "second \(second)")
            world.advance(seconds: 1)
        }
        #expect(try await world.lease().isEmpty)
    }

    // MARK: Wakes

    @Test(arguments: [false, true])
    func `after a restart a wake is pushed although its device answered a moment before`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        let session = Session()
        world.sessions.join(session, device: world.device.serial)
        let first = try await world.send()
        try await world.send()
        world.advance(seconds: 5)
        try await world.acknowledge(first)
        if isRestarted { try await world.restart() }
        world.advance(seconds: 5)
        #expect(try await world.lease().count == (isRestarted ? 1 : 0))
        world.advance(seconds: 5)
        #expect(try await world.lease().count == (isRestarted ? 0 : 1), "the device did not answer again")
    }

    @Test(arguments: [false, true])
    func `a wake after a restart is for the same messages`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        for _ in 0..<20 { try await world.send(.low) }
        let waking = try await world.send(ttl: 5000)
        for _ in 0..<20 { try await world.send(.low) }
        let end = world.now.adding(seconds: 5000)
        for _ in 0..<2 {
            let pushes = try await world.lease()
            try #require(pushes.count == 1)
            #expect(pushes[0].content == .wake && pushes[0].expiresAt == end)
            try await world.end(pushes[0], .handed)
            world.advance(seconds: WakePace.shortestSeconds)
            if isRestarted { try await world.restart() }
        }
        // The other messages do not wake the device.
        try await world.acknowledge(waking)
        if isRestarted { try await world.restart() }
        #expect(try await world.lease().isEmpty)
        #expect(try await world.waiting().count == 40)
    }

    @Test(arguments: [false, true])
    func `a device with an empty inbox is not pushed to after a restart`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        let message = try await world.send()
        try await world.hand()
        try await world.acknowledge(message)
        if isRestarted { try await world.restart() }
        world.advance(seconds: WakePace.shortestSeconds)
        #expect(try await world.lease().isEmpty)
        try await world.send()
        #expect(try await world.lease().count == 1)
    }

    @Test(arguments: [false, true])
    func `a report of a token on the same day does not count after a restart`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        try await world.send()
        world.advance(seconds: 5 * 3600)
        _ = try await world.domain.devices.update(world.device, from: nil, confirms: true) { $0 }
        if isRestarted { try await world.restart() }
        world.advance(seconds: 3600)
        let pushes = try await world.lease()
        try #require(pushes.count == 1)
        let died = world.now.adding(seconds: -2 * 3600)
        let state = try await world.end(pushes[0], .tokenDead(reason: "Unregistered", since: died))
        let status = try await world.domain.devices.registration(of: world.device).status
        let expected: (PushState, DeviceStatus) =
            isRestarted ? (.rejected, .suspended(.tokenDead)) : (.scheduled, .registered)
        #expect(state == expected.0 && status == expected.1)
        // A suspended device that reports its token again gets pushes again.
        let again = try await world.domain.devices.update(world.device, from: nil, confirms: true) { $0 }
        #expect(again.status == .registered)
    }

    @Test(arguments: [false, true])
    func `a slow pace continues after a restart if the connection of the device was not written`(isRestarted: Bool)
        async throws
    {
        var world = try await RestartWorld()
        try await world.send()
        for _ in 0..<2 {
            try await world.hand()
            world.advance(seconds: WakePace.shortestSeconds)
        }
        try await world.hand()
        world.domain.devices.sawRegistered(world.device)
        if isRestarted { try await world.restart() }
        try await world.domain.devices.writeSeen()
        world.advance(seconds: WakePace.shortestSeconds)
        #expect(try await world.lease().count == (isRestarted ? 0 : 1))
        world.advance(seconds: 3600 - WakePace.shortestSeconds)
        if isRestarted { #expect(try await world.lease().count == 1, "an hour after the third wake") }
    }

    @Test func `a slow pace ends if the server stopped after the device connected`() async throws {
        var world = try await RestartWorld()
        try await world.send()
        for _ in 0..<2 {
            try await world.hand()
            world.advance(seconds: WakePace.shortestSeconds)
        }
        try await world.hand()
        world.domain.devices.sawRegistered(world.device)
        try await world.restart(stops: true)
        world.advance(seconds: WakePace.shortestSeconds)
        #expect(try await world.lease().count == 1)
    }

    // MARK: Inboxes

    @Test(arguments: [false, true])
    func `an inbox is as full after a restart as before`(isRestarted: Bool) async throws {
        var settings = RestartWorld.Settings()
        settings.store.inbox.envelopes = 2
        var world = try await RestartWorld(settings)
        let first = try await world.send()
        try await world.send()
        if isRestarted { try await world.restart() }
        let present = world
        let refusal = await #expect(throws: Refusal.self) { try await present.send() }
        #expect(refusal?.code == .inboxFull)
        try await world.acknowledge(first)
        try await world.send()
        #expect(try await world.waiting().count == 2)
    }

    @Test(arguments: [false, true])
    func `a message whose acknowledgement could not be written is delivered again after a restart`(isRestarted: Bool)
        async throws
    {
        var world = try await RestartWorld()
        let message = try await world.send()
        stores.refuseChanges(of: world.store, with: StoreFault(.full, "the disk is full"))
        try await world.acknowledge(message)
        #expect(world.inbox.hasUnwritten)
        if isRestarted {
            try await world.restart()
        } else {
            stores.refuseChanges(of: world.store, with: nil)
            await world.inbox.writeUnwritten()
        }
        #expect(try await world.waiting() == (isRestarted ? [message] : []))
    }

    @Test(arguments: [false, true])
    func `a device that did not connect again after a restart is woken at once`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        let session = Session()
        world.sessions.join(session, device: world.device.serial)
        if isRestarted { try await world.restart() }
        try await world.send()
        #expect(try await world.lease().count == (isRestarted ? 1 : 0))
        world.advance(seconds: WakeRequest.presenceSeconds)
        #expect(try await world.lease().count == (isRestarted ? 0 : 1))
    }
}
