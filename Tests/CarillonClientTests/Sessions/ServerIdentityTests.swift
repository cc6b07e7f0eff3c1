import CarillonWire
import Testing

@testable import CarillonClient

/// Registration, a server that moves, and the end of a device, without a socket.
struct ServerIdentityTests {
    private typealias Base = ClientSessionTests

    private static let start = Base.start
    private static let settings = ClientSession.Settings(server: "https://new.example.com")
    private static let there = ServerBody(
        server: "s1", socket: "wss://new.example.com/", endpoints: "https://new.example.com/push/")
    private static let refreshed = DeviceIdentity(device: "d", credential: "c", socket: "wss://new.example.com/")

    /// A device of the server `s1`, whose address was another one.
    private static func moved() -> ClientSession {
        var stored = Base.stored(.open)
        stored.serverID = "s1"
        stored.formerServer = "http://old.example.com"
        var session = ClientSession(settings, restoring: stored)
        _ = session.started(at: start)
        return session
    }

    // MARK: Registration

    @Test func `the secret of a registration is stored before the first attempt and kept until the first hello`() {
        var session = ClientSession(Self.settings)
        _ = session.started(at: Self.start)
        #expect(session.registrationBegan(secret: "first") == [.write(.saveRegistration("first"))])
        _ = session.deviceRegistrationFailed(.unreachable, at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(60))
        #expect(session.move == .registerDevice)
        #expect(session.registrationBegan(secret: "second").isEmpty)
        #expect(session.registration.secret == "first")
        let actions = session.deviceRegistered(Base.identity, server: "s1")
        #expect(actions.contains(.write(.saveServer(address: "https://new.example.com", id: "s1"))))
        #expect(session.registration.secret == "first")
        #expect(session.knownServer.id == "s1")
        _ = session.socketOpened(at: Self.start)
        #expect(Base.receive(.hello(Base.hello), &session).contains(.write(.saveRegistration(nil))))
        #expect(session.registration.secret == nil)
    }

    @Test func `an attempt that an earlier process made is gone on with`() {
        var session = ClientSession(Self.settings, restoring: StoredState(registration: "stored"))
        _ = session.started(at: Self.start)
        #expect(session.registrationBegan(secret: "fresh").isEmpty)
        #expect(session.registration.secret == "stored")
    }

    // MARK: A server that moves

    @Test func `a server at another address must identify itself before it receives anything`() {
        var session = Self.moved()
        #expect(session.move == .locateServer)
        let actions = session.serverLocated(Self.there, at: Self.start, random: 0)
        #expect(actions.contains(.write(.saveServer(address: "https://new.example.com", id: "s1"))))
        #expect(actions.contains(.write(.saveIdentity(Self.refreshed))))
        #expect(session.move == .openSocket(Self.refreshed))
    }

    @Test func `the channels of a server that moved have its new address and their token, which is due again`() {
        var session = Self.moved()
        let actions = session.serverLocated(Self.there, at: Self.start, random: 0)
        #expect(actions.contains(.deliver(.notifyMoved, to: Base.name)))
        #expect(session.channels[Base.name]?.endpoint?.text == "https://new.example.com/push/token")
        #expect(session.channels[Base.name]?.isTokenDue == true)
        #expect(session.channels[Base.name]?.state == .open)
    }

    @Test func `another server receives nothing, and nothing is forgotten; its identity is requested again`() {
        var session = Self.moved()
        var other = Self.there
        other.server = "s2"
        let actions = session.serverLocated(other, at: Self.start, random: 0)
        #expect(actions.last?.kind == "noteFailure")
        #expect(!actions.contains { $0.kind == "write" })
        #expect(session.registration.identity == Base.identity)
        #expect(session.move == .rest)
        _ = session.timerFired(at: Self.start + .seconds(60))
        #expect(session.move == .locateServer)
    }

    @Test(arguments: [true, false]) func `a moved server that does not answer is called again`(isReached: Bool) {
        var session = Self.moved()
        let actions = session.serverNotLocated(isReached: isReached, at: Self.start, random: 0)
        #expect(actions == [.notifyAvailability(Availability(network: isReached, service: false))])
        #expect(session.move == .rest)
        _ = session.timerFired(at: Self.start + .seconds(60))
        #expect(session.move == .locateServer)
    }

    @Test func `a moved server is not called again before its hint`() {
        var session = Self.moved()
        _ = session.serverNotLocated(isReached: true, retryAfter: .seconds(300), at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(299))
        #expect(session.move == .rest)
        _ = session.timerFired(at: Self.start + .seconds(300))
        #expect(session.move == .locateServer)
    }

    @Test func `the deletion of a device is not repeated before the server's hint`() {
        let deregistration = Deregistration(device: "d", credential: "c", server: "")
        var session = ClientSession(
            Self.settings, restoring: StoredState(identityWasLost: true, deregistrations: [deregistration]))
        _ = session.started(at: Self.start)
        #expect(session.move == .deregister(deregistration))
        _ = session.deregistrationFailed(deregistration, retryAfter: .seconds(300), at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(299))
        #expect(session.move == .rest)
        _ = session.timerFired(at: Self.start + .seconds(300))
        #expect(session.move == .deregister(deregistration))
    }

    @Test func `after a failed connection the server is asked for its sockets, and the address is refreshed`() {
        var stored = Base.stored(.open)
        stored.serverID = "s1"
        var session = ClientSession(Self.settings, restoring: stored)
        _ = session.started(at: Self.start)
        #expect(session.move == .openSocket(Base.identity))
        _ = session.socketFailed(reachedServer: false, at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(60))
        #expect(session.move == .locateServer)
        _ = session.serverLocated(Self.there, at: Self.start, random: 0)
        #expect(session.move == .openSocket(Self.refreshed))
    }

    @Test func `another server at the same address is asked whether it knows the device, and nothing is accepted from it`() {
        var stored = Base.stored(.open)
        stored.serverID = "s1"
        var session = ClientSession(Self.settings, restoring: stored)
        _ = session.started(at: Self.start)
        _ = session.socketFailed(reachedServer: false, at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(60))
        var other = Self.there
        other.server = "s2"
        let actions = session.serverLocated(other, at: Self.start, random: 0)
        #expect(actions == [.notifyAvailability(Base.reachable)])
        #expect(session.move == .openSocket(Base.identity))
        #expect(session.knownServer.id == "s1")
    }

    @Test func `at the configured address, a client continues with a server that does not identify itself`() {
        var session = ClientSession(Self.settings, restoring: Base.stored())
        _ = session.started(at: Self.start)
        _ = session.socketFailed(reachedServer: false, at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(60))
        #expect(session.serverNotLocated(isReached: true, at: Self.start, random: 0).isEmpty)
        #expect(session.move == .openSocket(Base.identity))
    }

    @Test func `a server that reports its id at hello is known by it from then on`() {
        var session = ClientSession(Self.settings, restoring: Base.stored())
        _ = session.started(at: Self.start)
        _ = session.socketOpened(at: Self.start)
        let hello = ServerFrame.hello(.init(uaid: "d", carillon: .init(keepAliveSeconds: 30, server: "s1")))
        let save = SessionAction.write(.saveServer(address: "https://new.example.com", id: "s1"))
        #expect(Base.receive(hello, &session).contains(save))
        _ = session.socketClosed(code: nil, at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(60))
        _ = session.socketOpened(at: Self.start)
        #expect(!Base.receive(hello, &session).contains(save))
    }

    // MARK: Signing out

    @Test func `a device that signs out is forgotten at once, and the server is notified until it confirms`() throws {
        var session = Base.live(Base.stored(.open))
        let deregistration = Deregistration(device: "d", credential: "c", server: "")
        let actions = session.signedOut(at: Self.start)
        #expect(actions.contains(.write(.saveDeregistration(deregistration))))
        #expect(actions.contains(.write(.eraseIdentity)))
        #expect(actions.contains(.write(.removeChannel(identifier: Base.name))))
        #expect(actions.contains(.deliver(.notifyClosed(token: "token"), to: Base.name)))
        #expect(actions.last == .closeSocket(code: 1000))
        #expect(session.registration.identity == nil)
        _ = session.socketClosed(code: 1000, at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(60))
        // The deregistration is sent by the client itself.
        #expect(session.move == .rest)
        _ = session.deregistrationFailed(deregistration, at: Self.start, random: 0)
        for _ in 0..<2 {
            #expect(session.move == .rest)
            _ = session.timerFired(at: Self.start + .seconds(60))
            #expect(session.move == .deregister(deregistration))
            _ = session.deregistrationFailed(deregistration, at: Self.start, random: 0)
        }
        _ = session.timerFired(at: Self.start + .seconds(60))
        #expect(session.move == .deregister(deregistration))
        #expect(session.deregistered(deregistration).contains(.write(.removeDeregistration(device: "d"))))
        // No device is registered until a channel is needed.
        #expect(session.move == .rest)
        #expect(session.deadline == nil)
        _ = try session.connectRequested(Base.name, as: Base.id, deadline: nil)
        #expect(session.move == .registerDevice)
    }

    @Test func `after a sign-out while a socket opens, no hello is sent`() {
        var session = ClientSession(Self.settings, restoring: Base.stored(.open))
        _ = session.started(at: Self.start)
        _ = session.signedOut(at: Self.start)
        #expect(session.socketOpened(at: Self.start) == [.closeSocket(code: 1000)])
        _ = session.timerFired(at: Self.start)
        #expect(session.move == .rest)
        #expect(session.phase == .resting)
    }

    @Test func `a device of a server that moved is deleted where it was`() {
        var session = Self.moved()
        _ = session.signedOut(at: Self.start)
        #expect(session.deregistrations.waiting.map(\.server) == ["http://old.example.com"])
    }

    @Test func `a deregistration that fails does not keep another device from its registration`() throws {
        let deregistration = Deregistration(device: "d", credential: "c", registration: "secret", server: "")
        var session = ClientSession(
            Self.settings, restoring: StoredState(identityWasLost: true, deregistrations: [deregistration]))
        _ = session.started(at: Self.start)
        _ = try session.connectRequested(Base.name, as: Base.id, deadline: nil)
        #expect(session.move == .deregister(deregistration))
        let next = session.deregistrationFailed(deregistration, retryAfter: .seconds(40), at: Self.start, random: 0)
        #expect(next == [.wake] && session.move == .registerDevice)
        _ = session.registrationBegan(secret: "s")
        let later = Self.start + .seconds(41)
        _ = session.deviceRegistrationFailed(.unavailable(retryAfter: nil), at: Self.start, random: 0)
        _ = session.timerFired(at: Self.start + .seconds(5))
        #expect(session.move == .registerDevice, "the deregistration has its own time")
        _ = session.deviceRegistrationFailed(.unavailable(retryAfter: nil), at: Self.start + .seconds(39), random: 0)
        _ = session.timerFired(at: later)
        #expect(session.move == .deregister(deregistration))
        _ = session.deregistrationFailed(deregistration, at: later, random: 0)
        #expect(session.move == .registerDevice)
        _ = session.deviceRegistrationFailed(.refused, at: later, random: 0)
        #expect(session.channels[Base.name]?.state == .error)
        // The deletion is tried again all the same.
        #expect(session.move == .rest && session.deadline == later + .seconds(1))
        _ = session.timerFired(at: later + .seconds(1))
        #expect(session.move == .deregister(deregistration))
    }

    @Test func `a wake sends a deregistration that is due, and no other`() {
        let deregistration = Deregistration(device: "d", credential: "c", server: "")
        var stored = Base.stored(.open)
        stored.deregistrations = [deregistration]
        for (seconds, isDue) in [(1, false), (9, true)] {
            var session = ClientSession(Self.settings, restoring: stored)
            _ = session.started(at: Self.start)
            _ = session.deregistrationFailed(deregistration, retryAfter: .seconds(5), at: Self.start, random: 0)
            _ = session.socketFailed(reachedServer: false, at: Self.start, random: 0)
            _ = session.wakeReceived(at: Self.start + .seconds(seconds))
            #expect(session.move == (isDue ? .deregister(deregistration) : .locateServer))
        }
    }

    @Test func `a failed deregistration is sent again beside the live connection of another device`() {
        let (first, second) = (
            Deregistration(device: "1", credential: "c", server: ""),
            Deregistration(device: "2", credential: "c", server: "")
        )
        var stored = Base.stored(.open)
        stored.deregistrations = [first, second]
        var session = ClientSession(Self.settings, restoring: stored)
        _ = session.started(at: Self.start)
        #expect(session.move == .deregister(first))
        _ = session.deregistrationFailed(first, at: Self.start, random: 0)
        #expect(session.move == .openSocket(Base.identity))
        _ = session.socketOpened(at: Self.start)
        _ = Base.receive(.hello(Base.hello), &session)
        #expect(session.phase == .live && session.deadline == Self.start + .milliseconds(500))
        let early = session.timerFired(at: Self.start + .milliseconds(400))
        #expect(early.isEmpty)
        let due = session.timerFired(at: Self.start + .milliseconds(500))
        #expect(due.contains(.deregister(second)), "the first one may never succeed")
        let again = session.timerFired(at: Self.start + .seconds(5))
        #expect(!again.contains(.deregister(second)), "it is under way")
        let failed = session.deregistrationFailed(second, at: Self.start + .seconds(5), random: 0)
        #expect(failed.isEmpty && session.phase == .live)
        let third = session.timerFired(at: Self.start + .seconds(6))
        #expect(third.contains(.deregister(first)))
        let said = session.deregistered(first)
        #expect(said == [.write(.removeDeregistration(device: "1")), .deregister(second)])
        let last = session.deregistered(second)
        #expect(last == [.write(.removeDeregistration(device: "2"))] && session.deregistrations.dueAt == nil)
    }

    @Test func `a deregistration that an earlier process left pending is sent at the start`() {
        let deregistration = Deregistration(device: "d", credential: "c", server: "")
        var session = ClientSession(
            Self.settings, restoring: StoredState(identityWasLost: true, deregistrations: [deregistration]))
        _ = session.started(at: Self.start)
        #expect(session.move == .deregister(deregistration))
    }
}
