import CarillonAPNs
import CarillonAPNsSimulator
import CarillonCore
import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// Who is there is not woken at once, nor collected, and is let go when its credential is another's.
@Suite(.timeLimit(.minutes(5)))
struct PresenceTests {
    private final class Session: LiveSession {
        let ends = Mutex<[SessionEnd]>([])
        func offer(_ envelope: Envelope) {}
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
        func settled(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) { ends.withLock { $0.append(reason) } }
    }

    private func isDue(_ world: GatewayWorld) async throws -> Bool {
        try await !world.domain.pushes.dueLanes(at: world.now).isEmpty
    }

    @Test(arguments: [true, false])
    func `who is connected or polls has ten seconds to acknowledge`(isPoll: Bool) async throws {
        let world = try await GatewayWorld()
        let device = try await world.device()
        let sessions = world.domain.homes.home(of: device.serial).sessions
        let session = Session()
        if isPoll { sessions.addWaiter(session, for: device.serial) } else { sessions.join(session, device: device.serial) }
        _ = try await world.send(to: device)
        #expect(try await !isDue(world))
        world.advance(seconds: 9)
        #expect(try await !isDue(world))
        world.advance(seconds: 1)
        #expect(try await isDue(world))
        await world.simulator.stop()
    }

    @Test func `a renewed credential lets go of who is connected with the earlier one`() async throws {
        let world = try await GatewayWorld()
        let device = try await world.device()
        let session = Session()
        world.domain.homes.home(of: device.serial).sessions.join(session, device: device.serial)
        try await world.domain.devices.renewCredential(
            of: device, secret: String(repeating: "Ab-_", count: 8), from: nil)
        #expect(session.ends.withLock { $0 } == [.deviceGone])
        await world.simulator.stop()
    }

    @Test func `a device that nobody saw for long is collected, unless it is connected`() async throws {
        let world = try await GatewayWorld()
        let device = try await world.device()
        let sessions = world.domain.homes.home(of: device.serial).sessions
        let session = Session()
        sessions.join(session, device: device.serial)
        func collect() async throws -> Int {
            try await world.domain.devices.collectInactive(inactiveSeconds: 1000, suspendedSeconds: 100, limit: 10)
        }
        world.advance(seconds: 999)
        #expect(try await collect() == 0)
        world.advance(seconds: 1)
        #expect(try await collect() == 0, "it is connected")
        try await world.domain.devices.writeSeen()
        sessions.leave(session, device: device.serial)
        #expect(try await collect() == 0, "it was seen now")
        world.advance(seconds: 100)
        _ = try await world.domain.devices.suspend(device)
        world.advance(seconds: 99)
        #expect(try await collect() == 0)
        world.advance(seconds: 1)
        #expect(try await collect() == 1)
        await #expect(throws: Refusal.self) { try await world.domain.devices.find(device.id) }
        await world.simulator.stop()
    }

    @Test func `an answer that nobody knows is waited out a few times, and then somebody must look`() {
        let odd = APNsRejection(status: 299, text: "odd")
        #expect(PushAnswer(odd, attempt: 1) == .later(reason: "299", seconds: 120))
        #expect(PushAnswer(odd, attempt: 4) == .later(reason: "299", seconds: 960))
        #expect(PushAnswer(odd, attempt: 5) == .wrong(reason: "299"))
    }

    @Test(arguments: [
        (
            APNsRejection(status: 410, reason: .unregistered, invalidSince: Date(timeIntervalSince1970: 7)),
            PushAnswer.tokenDead(reason: "Unregistered", since: Timestamp(milliseconds: 7000))
        ),
        (APNsRejection(status: 400, reason: .badDeviceToken), .tokenUnknownHere(reason: "BadDeviceToken")),
        (APNsRejection(status: 400, reason: .deviceTokenNotForTopic), .wrong(reason: "DeviceTokenNotForTopic")),
        (APNsRejection(status: 403, reason: .invalidProviderToken), .credentialsRefused(reason: "InvalidProviderToken")),
        (APNsRejection(status: 429, reason: .tooManyRequests), .later(reason: "TooManyRequests", seconds: 1)),
        (
            APNsRejection(status: 429, reason: .tooManyProviderTokenUpdates),
            .credentialsRefused(reason: "TooManyProviderTokenUpdates")
        ),
        (APNsRejection(status: 503, reason: .serviceUnavailable), .later(reason: "ServiceUnavailable", seconds: 900)),
        (APNsRejection(status: 413, reason: .payloadTooLarge), .wrong(reason: "PayloadTooLarge")),
    ])
    func `a refusal is what its class says`(_ rejection: APNsRejection, _ answer: PushAnswer) {
        #expect(PushAnswer(rejection, attempt: 1) == answer)
    }

    @Test func `without an answer it counts whether the service may have had the push`() {
        #expect(
            PushAnswer(APNsError(.connectionLost, "", mayHaveBeenProcessed: true)) == .unanswered(reason: "connectionLost"))
        #expect(PushAnswer(APNsError(.connectionLost, "")) == .unreachable(reason: "connectionLost"))
        #expect(PushAnswer(APNsError(.shutDown, "", mayHaveBeenProcessed: true)) == .unanswered(reason: "shutDown"))
        #expect(PushAnswer(APNsError(.cancelled, "")) == .notSent)
        #expect(PushAnswer(APNsError(.payloadTooLarge, "")) == .wrong(reason: "payloadTooLarge"))
        #expect(PushAnswer(APNsError(.credentialsInvalid, "")) == .credentialsRefused(reason: "credentialsInvalid"))
    }
}
