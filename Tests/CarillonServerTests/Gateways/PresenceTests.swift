import CarillonAPNs
import CarillonAPNsSimulator
import CarillonCore
import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// A connected device is not woken at once and not removed. It is disconnected when its credential belongs to another device.
@Suite(.timeLimit(.minutes(5)))
struct PresenceTests {
    private final class Session: LiveSession {
        let ends = Mutex<[SessionEnd]>([])
        func offer(_ envelope: Envelope) {}
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
        func finished(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) { ends.withLock { $0.append(reason) } }
    }

    private func isDue(_ world: GatewayWorld) async throws -> Bool {
        try await !world.domain.pushes.dueQueues(in: .all, at: world.now).isEmpty
    }

    @Test(arguments: [true, false])
    func `a device that is connected or polls has ten seconds to acknowledge`(isPoll: Bool) async throws {
        let world = try await GatewayWorld()
        let device = try await world.device()
        let sessions = world.domain.runtime.sessions
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

    @Test func `a renewed credential disconnects a session with the earlier one`() async throws {
        let world = try await GatewayWorld()
        let device = try await world.device()
        let session = Session()
        world.domain.runtime.sessions.join(session, device: device.serial)
        try await world.domain.devices.renewCredential(
            of: device, secret: String(repeating: "Ab-_", count: 8), from: nil)
        #expect(session.ends.withLock { $0 } == [.deviceGone])
        await world.simulator.stop()
    }

    @Test func `a device that nobody saw for long is removed, unless it is connected`() async throws {
        let world = try await GatewayWorld()
        let device = try await world.device()
        let sessions = world.domain.runtime.sessions
        let session = Session()
        sessions.join(session, device: device.serial)
        func removeUnused() async throws -> Int {
            let retention = RetentionTime.uninterrupted(at: world.now)
            let inactive = try await world.domain.devices.removeUnused(
                .inactive, in: .all, afterSeconds: 1000, by: retention, atOnce: 10)
            let suspended = try await world.domain.devices.removeUnused(
                .suspended, in: .all, afterSeconds: 100, by: retention, atOnce: 10)
            return inactive.count + suspended.count
        }
        world.advance(seconds: 999)
        #expect(try await removeUnused() == 0)
        world.advance(seconds: 1)
        #expect(try await removeUnused() == 0, "it is connected")
        try await world.domain.devices.writeSeen()
        sessions.leave(session, device: device.serial)
        #expect(try await removeUnused() == 0, "it was seen now")
        world.advance(seconds: 100)
        _ = try await world.domain.devices.suspend(device)
        world.advance(seconds: 99)
        #expect(try await removeUnused() == 0)
        world.advance(seconds: 1)
        #expect(try await removeUnused() == 1)
        await #expect(throws: Refusal.self) { try await world.domain.devices.find(device.id) }
        await world.simulator.stop()
    }

    @Test(arguments: [204, 299, 302, 400, 401, 403, 404, 405, 408, 410, 413, 421, 425, 431])
    func `an answer without a reason decides nothing, however often it arrives`(_ status: Int) {
        let odd = APNsRejection(status: status, text: "<p>\r\n\u{1B}[32m" + String(repeating: "ä", count: 100))
        let description = "\(status): <p>   [32m" + String(repeating: "ä", count: 45)
        #expect(PushAnswer(odd, attempt: 1) == .unknown(reason: "\(status)", description: description))
        #expect(PushAnswer(odd, attempt: 1000) == .unknown(reason: "\(status)", description: description))
        #expect(
            PushAnswer(APNsRejection(status: status), attempt: 1)
                == .unknown(reason: "\(status)", description: "\(status) without a body"))
    }

    @Test func `haste and trouble count without a reason`() {
        #expect(PushAnswer(APNsRejection(status: 429, text: "slow"), attempt: 2) == .later(reason: "429", seconds: 2))
        #expect(PushAnswer(APNsRejection(status: 502, text: "<p>"), attempt: 1) == .later(reason: "502", seconds: 900))
    }

    @Test(arguments: [
        (
            APNsRejection(status: 410, reason: .unregistered, invalidSince: Date(timeIntervalSince1970: 7)),
            PushAnswer.tokenDead(reason: "Unregistered", since: Timestamp(milliseconds: 7000))
        ),
        (APNsRejection(status: 400, reason: .badDeviceToken), .tokenUnknownHere(reason: "BadDeviceToken")),
        (APNsRejection(status: 400, reason: .deviceTokenNotForTopic), .tokenOfAnotherApp(reason: "DeviceTokenNotForTopic")),
        (APNsRejection(status: 403, reason: .invalidProviderToken), .credentialsRefused(reason: "InvalidProviderToken")),
        (APNsRejection(status: 429, reason: .tooManyRequests), .later(reason: "TooManyRequests", seconds: 1)),
        (
            APNsRejection(status: 429, reason: .tooManyProviderTokenUpdates),
            .credentialsRefused(reason: "TooManyProviderTokenUpdates")
        ),
        (APNsRejection(status: 503, reason: .serviceUnavailable), .later(reason: "ServiceUnavailable", seconds: 900)),
        (APNsRejection(status: 413, reason: .payloadTooLarge), .wrong(reason: "PayloadTooLarge")),
    ])
    func `a refusal has the effect of its class`(_ rejection: APNsRejection, _ answer: PushAnswer) {
        #expect(PushAnswer(rejection, attempt: 1) == answer)
    }

    @Test func `without an answer it counts whether the service may have had the push`() {
        #expect(
            PushAnswer(APNsError(.connectionLost, "", mayHaveBeenProcessed: true)) == .unanswered(reason: "connectionLost"))
        #expect(PushAnswer(APNsError(.connectionLost, "")) == .unreachable(reason: "connectionLost"))
        #expect(PushAnswer(APNsError(.notSent, "")) == .unreachable(reason: "notSent"))
        #expect(PushAnswer(APNsError(.shutDown, "", mayHaveBeenProcessed: true)) == .unanswered(reason: "shutDown"))
        #expect(PushAnswer(APNsError(.cancelled, "")) == .notSent)
        #expect(PushAnswer(APNsError(.payloadTooLarge, "")) == .wrong(reason: "payloadTooLarge"))
        #expect(PushAnswer(APNsError(.credentialsInvalid, "")) == .credentialsRefused(reason: "credentialsInvalid"))
    }
}
