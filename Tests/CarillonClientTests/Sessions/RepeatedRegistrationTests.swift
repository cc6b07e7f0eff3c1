import CarillonMessages
import CarillonWire
import Testing

@testable import CarillonClient

/// Registrations whose credential the server replaced before it accepted it.
struct RepeatedRegistrationTests {
    private typealias Base = ClientSessionTests

    private static let replaced = DeviceIdentity(device: "d", credential: "c2", socket: Base.identity.socket)

    /// A process that begins with an identity whose credential the server never accepted.
    private func unproven(isRestored: Bool = false, _ state: ChannelState? = nil) -> ClientSession {
        var stored = Base.stored(state)
        stored.registration = "secret"
        stored.isRestored = isRestored
        var session = ClientSession(.init(), restoring: stored)
        _ = session.started(at: Base.start)
        return session
    }

    private func refuse(_ session: inout ClientSession, code: UInt16 = 4401) -> [SessionAction] {
        _ = session.socketOpened(at: Base.start)
        return session.socketClosed(code: code, at: Base.start, random: 0)
    }

    @Test func `a credential that is refused before the first hello is requested again with the same secret`() {
        var session = unproven()
        let actions = refuse(&session)
        #expect(!actions.contains { $0.kind == "write" })
        #expect(session.registration.identity == Base.identity)
        #expect(session.move == .rest, "the server is not asked at once")
        _ = session.timerFired(at: Base.start + .seconds(60))
        #expect(session.move == .registerDevice)
        #expect(session.registrationBegan(secret: "fresh").isEmpty)
        #expect(session.registration.secret == "secret")
        #expect(session.deviceRegistered(Self.replaced).contains(.write(.saveIdentity(Self.replaced))))
        #expect(session.move == .openSocket(Self.replaced))
        _ = session.socketOpened(at: Base.start)
        #expect(Base.receive(.hello(Base.hello), &session).contains(.write(.saveRegistration(nil))))
    }

    @Test func `an answer that is replaced repeatedly is requested again, later each time`() {
        var session = unproven()
        var waits: [ContinuousClock.Instant] = []
        for _ in 0..<3 {
            _ = refuse(&session)
            #expect(session.move == .rest)
            waits.append(session.deadline ?? Base.start)
            _ = session.timerFired(at: Base.start + .seconds(60))
            #expect(session.move == .registerDevice)
            _ = session.deviceRegistrationFailed(.unreachable, at: Base.start, random: 0)
            _ = session.timerFired(at: Base.start + .seconds(120))
            #expect(session.move == .registerDevice)
            _ = session.deviceRegistered(Self.replaced)
        }
        #expect(session.registration.secret == "secret")
        #expect(waits == waits.sorted() && Set(waits).count == 3)
    }

    @Test func `a channel that waits stays until the device is registered`() {
        var session = unproven(.connecting)
        #expect(!refuse(&session).contains { $0.kind == "deliver" })
        #expect(session.channels[Base.name]?.state == .connecting)
        _ = session.timerFired(at: Base.start + .seconds(60))
        _ = session.deviceRegistered(Self.replaced)
        _ = session.socketOpened(at: Base.start)
        let actions = Base.receive(.hello(Base.hello), &session)
        #expect(actions.contains { if case .send(.register) = $0 { true } else { false } })
    }

    @Test func `a device that the server accepted once is lost when it is unknown`() {
        var session = unproven()
        _ = session.socketOpened(at: Base.start)
        _ = Base.receive(.hello(Base.hello), &session)
        #expect(session.socketClosed(code: 4401, at: Base.start, random: 0).contains(.write(.eraseIdentity)))
        #expect(session.registration.identity == nil)
    }

    @Test func `a device that was deleted before the first hello is lost`() {
        var session = unproven()
        #expect(refuse(&session, code: 4410).contains(.write(.eraseIdentity)))
        #expect(session.move == .rest)
    }

    @Test func `a registration that is refused when it is repeated loses the device`() {
        var session = unproven(.connecting)
        _ = refuse(&session)
        _ = session.timerFired(at: Base.start + .seconds(60))
        let actions = session.deviceRegistrationFailed(.refused, at: Base.start, random: 0)
        #expect(actions.contains(.write(.eraseIdentity)))
        #expect(actions.contains(.deliver(.notifyError(code: 202), to: Base.name)))
        #expect(session.registration.identity == nil && !session.registration.mustRepeat)
        #expect(session.move == .rest && session.deadline == nil)
    }

    @Test func `an install without its mark whose renewal is refused repeats its registration`() {
        var session = unproven(isRestored: true)
        #expect(session.move == .renewCredential(Base.identity))
        _ = session.renewalBegan(secret: "next")
        #expect(!session.renewalRefused(at: Base.start, random: 0).contains(.write(.eraseIdentity)))
        #expect(session.move == .rest)
        _ = session.timerFired(at: Base.start + .seconds(60))
        #expect(session.move == .registerDevice)
        let actions = session.deviceRegistered(Self.replaced)
        #expect(actions.contains(.write(.saveRenewal(nil))) && actions.contains(.markInstall(device: "d")))
        #expect(session.move == .openSocket(Self.replaced))
        #expect(session.registration.renewal == nil && !session.registration.isRestored)
    }

    @Test func `a credential that is refused beside the socket is requested again with the same secret`() {
        var session = unproven()
        #expect(session.canOutlast(refusalOf: "c"))
        _ = session.credentialRefused("another")
        #expect(!session.registration.mustRepeat)
        _ = session.credentialRefused("c")
        #expect(session.move == .openSocket(Base.identity), "the attempt that is under way goes on")
        _ = session.socketFailed(reachedServer: false, at: Base.start, random: 0)
        _ = session.timerFired(at: Base.start + .seconds(60))
        #expect(session.move == .registerDevice && session.registration.secret == "secret")
        _ = session.deviceRegistered(Self.replaced)
        #expect(session.canOutlast(refusalOf: "c"), "a late refusal of the former credential")
        #expect(session.move == .openSocket(Self.replaced))
    }

    @Test func `a credential that the server accepts on the socket stays`() {
        var session = unproven()
        _ = session.credentialRefused("c")
        _ = session.socketOpened(at: Base.start)
        _ = Base.receive(.hello(Base.hello), &session)
        #expect(!session.registration.mustRepeat)
        #expect(!session.canOutlast(refusalOf: "c"))
        _ = session.credentialRefused("c")
        _ = session.socketClosed(code: nil, at: Base.start, random: 0)
        _ = session.timerFired(at: Base.start + .seconds(60))
        #expect(session.move != .registerDevice)
    }

    @Test func `an answer that stays valid ends the registration, and a refusal then ends the device`() {
        var session = ClientSession(.init())
        _ = session.started(at: Base.start)
        _ = session.registrationBegan(secret: "secret")
        let actions = session.deviceRegistered(Base.identity, isRepeatable: true, of: "secret")
        #expect(actions.contains(.write(.saveRegistration(nil))) && session.registration.secret == nil)
        #expect(refuse(&session).contains(.write(.eraseIdentity)))
        #expect(session.registration.identity == nil)
    }

    @Test func `a device of a registration that can be repeated signs out without its secret`() {
        var session = ClientSession(.init())
        _ = session.started(at: Base.start)
        _ = session.registrationBegan(secret: "secret")
        _ = session.deviceRegistered(Base.identity, isRepeatable: true, of: "secret")
        _ = session.signedOut(at: Base.start)
        #expect(
            session.deregistrations.waiting.map(\.registration) == [nil],
            "a lost answer to its deletion would make another device")
    }

    @Test func `a renewed credential ends the registration`() {
        var session = unproven(isRestored: true)
        _ = session.renewalBegan(secret: "next")
        let actions = session.credentialRenewed()
        #expect(actions.contains(.write(.saveRegistration(nil))))
        #expect(session.registration.secret == nil)
        _ = session.socketOpened(at: Base.start)
        let refused = session.socketClosed(code: 4401, at: Base.start, random: 0)
        #expect(refused.contains(.write(.eraseIdentity)), "another install has renewed the credential since")
    }

    @Test(arguments: [false, true])
    func `a device that signs out before the first hello is deleted with the secret`(isRefused: Bool) {
        var session = unproven()
        if isRefused { _ = refuse(&session) }
        let actions = session.signedOut(at: Base.start)
        let deregistration = Deregistration(device: "d", credential: "c", registration: "secret", server: "")
        #expect(actions.contains(.write(.saveDeregistration(deregistration))))
        #expect(actions.contains(.write(.saveRegistration(nil))))
        _ = session.deregistered(deregistration)
        _ = session.deviceRequested()
        _ = session.timerFired(at: Base.start + .seconds(60))
        #expect(session.move == .registerDevice)
        #expect(session.registrationBegan(secret: "fresh") == [.write(.saveRegistration("fresh"))])
    }

    @Test func `a sign-out while the registration is repeated ignores its answer`() {
        var session = unproven()
        _ = refuse(&session)
        _ = session.timerFired(at: Base.start + .seconds(60))
        _ = session.signedOut(at: Base.start)
        #expect(session.deviceRegistered(Self.replaced).isEmpty)
        #expect(session.registration.identity == nil && session.deregistrations.waiting.map(\.registration) == ["secret"])
    }

    @Test func `the answer of a registration before a sign-out is not the next user's`() {
        var session = unproven()
        _ = refuse(&session)
        _ = session.timerFired(at: Base.start + .seconds(60))
        _ = session.signedOut(at: Base.start)
        for deregistration in session.deregistrations.waiting { _ = session.deregistered(deregistration) }
        _ = session.deviceRequested()
        #expect(session.move == .registerDevice)
        let early = session.deviceRegistered(Self.replaced, of: "secret")
        #expect(early.isEmpty && session.registration.identity == nil)
        let failed = session.deviceRegistrationFailed(.refused, of: "secret", at: Base.start, random: 0)
        #expect(failed.isEmpty && session.move == .registerDevice)
        _ = session.registrationBegan(secret: "fresh")
        #expect(session.deviceRegistered(Self.replaced, of: "secret").isEmpty)
        #expect(session.deviceRegistered(Self.replaced, of: "fresh").contains(.write(.saveIdentity(Self.replaced))))
    }

    @Test func `a repeated registration that makes another device removes what belongs to the former device`() {
        var session = unproven()
        _ = refuse(&session)
        _ = session.timerFired(at: Base.start + .seconds(60))
        let other = DeviceIdentity(device: "other", credential: "c3", socket: Base.identity.socket)
        let actions = session.deviceRegistered(other)
        let erased = actions.firstIndex(of: .write(.eraseIdentity))
        let saved = actions.firstIndex(of: .write(.saveIdentity(other)))
        #expect(saved != nil && erased != nil && erased ?? 0 < saved ?? 0)
        #expect(actions.contains(.notifySubscriptions(.deviceLost)))
        #expect(session.move == .openSocket(other))
    }
}
