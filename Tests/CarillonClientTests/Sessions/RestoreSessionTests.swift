import CarillonWire
import Testing

@testable import CarillonClient

/// An install that a backup restored on other hardware.
struct RestoreSessionTests {
    private typealias Base = ClientSessionTests

    private func restored(renewal: String? = nil) -> ClientSession {
        var stored = Base.stored(.open)
        stored.isRestored = true
        stored.renewal = renewal
        var session = ClientSession(.init(), restoring: stored)
        _ = session.started(at: Base.start)
        return session
    }

    @Test func `a restored client renews its credential before it connects, with a secret that is stored first`() {
        var session = restored()
        #expect(session.move == .renewCredential(Base.identity))
        let began = session.renewalBegan(secret: "s")
        #expect(began == [.write(.saveRenewal("s"))])
        let again = session.renewalBegan(secret: "t")
        #expect(again.isEmpty && session.registration.renewal == "s")
        let renewed = session.credentialRenewed()
        let identity = DeviceIdentity(device: "d", credential: "d.s", socket: Base.identity.socket)
        #expect(renewed.contains(.write(.saveIdentity(identity))) && renewed.contains(.markInstall(device: "d")))
        #expect(session.move == .openSocket(identity))
        #expect(!session.registration.isRestored && session.registration.renewal == nil)
    }

    @Test func `an attempt whose answer was lost continues with the same secret`() {
        var session = restored(renewal: "s")
        let began = session.renewalBegan(secret: "t")
        #expect(began.isEmpty && session.registration.renewal == "s")
        _ = session.renewalFailed(isReached: false, retryAfter: .seconds(30), at: Base.start, random: 0)
        #expect(session.move == .rest && session.deadline == Base.start + .seconds(30))
        _ = session.timerFired(at: Base.start + .seconds(30))
        #expect(session.move == .renewCredential(Base.identity) && session.registration.renewal == "s")
    }

    @Test func `a client that the server does not know any more begins anew, and connects to an earlier server unchanged`() {
        var lost = restored(renewal: "s")
        let actions = lost.renewalRefused(at: Base.start, random: 0)
        #expect(actions.contains(.write(.eraseIdentity)) && lost.registration.identity == nil)
        #expect(actions.contains(.deliver(.notifyError(code: 201), to: Base.name)))
        #expect(lost.move == .rest && !lost.registration.isRestored && lost.registration.renewal == nil)
        var early = restored()
        _ = early.renewalBegan(secret: "s")
        let none = early.renewalUnsupported()
        #expect(none == [.write(.saveRenewal(nil))] && early.registration.renewal == nil)
        #expect(early.move == .openSocket(Base.identity))
    }

    @Test func `signing out while it renews leaves no device behind`() {
        var session = restored(renewal: "s")
        _ = session.signedOut(at: Base.start)
        #expect(session.deregistrations.waiting.map(\.nextCredential) == ["d.s"])
        #expect(session.deregistrations.waiting.map(\.credential) == [Base.identity.credential])
    }

    @Test func `an install that is where it was renews nothing, and a new one is marked`() {
        var known = ClientSession(.init(), restoring: Base.stored())
        _ = known.started(at: Base.start)
        #expect(known.move == .openSocket(Base.identity))
        var new = ClientSession(.init())
        _ = new.started(at: Base.start)
        let registered = new.deviceRegistered(Base.identity)
        #expect(registered.contains(.markInstall(device: "d")))
    }
}
