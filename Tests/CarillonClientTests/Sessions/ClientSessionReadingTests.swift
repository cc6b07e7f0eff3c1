import Testing

@testable import CarillonClient

struct ClientSessionReadingTests {
    private typealias Base = ClientSessionTests

    @Test func `the delay until the next attempt is never negative, and there is one only while the client waits`() {
        var session = ClientSession(.init(), restoring: Base.stored())
        #expect(session.retryDelay(at: Base.start) == nil)
        session.phase = .waiting(until: Base.start + .seconds(3))
        #expect(session.retryDelay(at: Base.start) == .seconds(3))
        #expect(session.retryDelay(at: Base.start + .seconds(4)) == .zero)
        session.phase = .live
        #expect(session.retryDelay(at: Base.start) == nil)
    }

    @Test func `the delay until a failed deregistration is sent again is never negative`() throws {
        var stored = Base.stored()
        let deregistration = Deregistration(device: "old", credential: "c", server: "http://host")
        stored.deregistrations = [deregistration]
        var session = ClientSession(.init(), restoring: stored)
        #expect(session.deregistrationDelay(at: Base.start) == nil)
        session.deregistrations.failed(deregistration, retryAfter: nil, at: Base.start, random: 0)
        #expect(session.deregistrationDelay(at: Base.start) == .milliseconds(500))
        #expect(session.deregistrationDelay(at: Base.start + .seconds(1)) == .zero)
    }

    @Test func `no identity is usable while the registration is repeated`() {
        var session = ClientSession(.init(), restoring: Base.stored())
        #expect(session.usableIdentity == Base.identity)
        session.registration.mustRepeat = true
        #expect(session.usableIdentity == nil)
        #expect(session.updateScope.identity == Base.identity)
    }

    @Test func `a report about the user is pending only if the server may know another user`() {
        var stored = Base.stored()
        (stored.user, stored.acceptedUser) = (.signedOut, nil)
        var session = ClientSession(.init(), restoring: stored)
        #expect(session.pendingUserNumber == nil)
        #expect(session.updateScope == UpdateScope(identity: Base.identity, user: nil, isUserPending: true))
        session.user.accepted = "ada"
        #expect(session.pendingUserNumber == 1)
        session.user.pending = nil
        #expect(session.pendingUserNumber == nil)
        #expect(session.updateScope == UpdateScope(identity: Base.identity, user: "ada", isUserPending: false))
    }
}
