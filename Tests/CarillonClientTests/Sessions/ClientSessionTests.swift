import CarillonMessages
import CarillonWire
import Testing

@testable import CarillonClient

struct ClientSessionTests {
    static let start = ContinuousClock.now
    static let identity = DeviceIdentity(device: "d", credential: "c", socket: "ws://host/")
    static let id = ChannelID(Bytes16(high: 1, low: 2))
    static let name = "com.example.presence"
    static let up = Availability(network: true, service: true)
    static let reachable = Availability(network: true, service: false)

    static func stored(_ state: ChannelState? = nil) -> StoredState {
        var stored = StoredState(identity: identity)
        if let state {
            stored.channels[name] = ChannelMachine(
                state: state, channelID: id, endpoint: ChannelEndpoint("https://push.example.com/push/token"),
                lastErrorCode: nil)
        }
        return stored
    }

    static func live(_ stored: StoredState = stored()) -> ClientSession {
        var session = ClientSession(.init(), restoring: stored)
        _ = session.started(at: Self.start)
        _ = session.socketOpened(at: start)
        _ = session.received(.hello(hello), answered: nil, at: start, random: 0)
        return session
    }

    static let hello = ServerFrame.Hello(uaid: "d", carillon: .init(keepAliveSeconds: 30))

    static func message(_ version: String, channel: ChannelID = id) -> NotificationFrame {
        NotificationFrame(channelID: channel.description, version: version, body: [], coding: nil)
    }

    static func receive(_ frame: ServerFrame, _ session: inout ClientSession, handled: Int? = nil) -> [SessionAction] {
        session.received(frame, answered: handled, at: start, random: 0)
    }

    // MARK: Identity

    @Test func `a first start registers the device`() {
        var session = ClientSession(.init())
        #expect(session.started(at: Self.start) == [.wake])
        #expect(session.move == .registerDevice)
        #expect(session.deviceRegistered(Self.identity).contains(.write(.saveIdentity(Self.identity))))
        #expect(session.move == .openSocket(Self.identity))
    }

    @Test func `a known device is not registered again`() {
        var session = ClientSession(.init(), restoring: Self.stored())
        _ = session.started(at: Self.start)
        #expect(session.move == .openSocket(Self.identity))
    }

    @Test func `a refused registration fails the waiting channels, and is repeated when a channel is needed`() throws {
        var session = ClientSession(.init())
        _ = try session.connectRequested(Self.name, as: Self.id, deadline: nil)
        _ = session.started(at: Self.start)
        let actions = session.deviceRegistrationFailed(.refused, at: Self.start, random: 0)
        #expect(actions.contains(.deliver(.notifyError(code: 202), to: Self.name)))
        #expect(session.move == .rest)
        #expect(session.deadline == nil)
        #expect(try session.connectRequested(Self.name, as: Self.id, deadline: nil).contains(.wake))
        #expect(session.move == .registerDevice)
    }

    @Test func `a server that cannot register now is called again, not before its hint`() {
        var session = ClientSession(.init())
        _ = session.started(at: Self.start)
        _ = session.deviceRegistrationFailed(.unavailable(retryAfter: .seconds(7)), at: Self.start, random: 0)
        #expect(session.timerFired(at: Self.start + .seconds(6)).isEmpty)
        #expect(session.move == .rest)
        #expect(session.timerFired(at: Self.start + .seconds(7)) == [.wake])
        #expect(session.move == .registerDevice)
    }

    @Test(arguments: [UInt16(4401), 4410])
    func `a device that the server does not know fails its channels and is forgotten`(_ code: UInt16) throws {
        var session = Self.live(Self.stored(.open))
        _ = Self.receive(.notification(Self.message("m")), &session)
        let actions = session.socketClosed(code: code, at: Self.start, random: 0)
        #expect(actions.contains(.write(.eraseIdentity)))
        #expect(actions.contains(.deliver(.notifyError(code: 201), to: Self.name)))
        #expect(actions.contains(.notifyAvailability(Self.reachable)))
        #expect(session.move == .rest)
        _ = try session.connectRequested(Self.name, as: Self.id, deadline: nil)
        #expect(session.move == .registerDevice)
    }

    @Test func `a disconnecting channel of a device that is lost is closed`() {
        var session = Self.live(Self.stored(.disconnecting))
        let actions = session.socketClosed(code: 4401, at: Self.start, random: 0)
        #expect(actions.contains(.deliver(.notifyClosed(token: "token"), to: Self.name)))
    }

    // MARK: Wakes

    @Test func `a wake on a connection where things still come waits for their end, and not for a pong`() {
        var session = Self.live()
        #expect(session.wakeReceived(at: Self.start) == [.send(.ping)])
        #expect(Self.receive(.pong, &session).isEmpty)
        #expect(Self.receive(.caughtUp, &session) == [.noteCaughtUp])
        #expect(session.wakeReceived(at: Self.start) == [.send(.ping)])
        #expect(Self.receive(.pong, &session) == [.noteCaughtUp])
        #expect(Self.receive(.pong, &session).isEmpty)
        // The next connection begins with the waiting entries.
        _ = session.socketClosed(code: nil, at: Self.start, random: 0)
        _ = session.wakeReceived(at: Self.start)
        _ = session.socketOpened(at: Self.start)
        _ = Self.receive(.hello(Self.hello), &session)
        _ = session.wakeReceived(at: Self.start)
        #expect(Self.receive(.pong, &session).isEmpty)
    }

    // MARK: Connection

    @Test func `hello identifies the device, and the answer makes the service available`() {
        var session = ClientSession(.init(), restoring: Self.stored())
        _ = session.started(at: Self.start)
        #expect(
            session.socketOpened(at: Self.start) == [
                .notifyAvailability(Self.reachable),
                .send(.hello(.init(carillon: 3, device: "d", credential: "c", also: ["services"]))),
            ])
        #expect(
            Self.receive(.hello(Self.hello), &session) == [
                .notifyAvailability(Self.up), .notifySubscriptions(.connected(version: 1)),
            ])
        #expect(session.deadline == Self.start + .seconds(30))
    }

    @Test func `a server that does not answer hello in time is left`() {
        var session = ClientSession(.init(), restoring: Self.stored())
        _ = session.started(at: Self.start)
        _ = session.socketOpened(at: Self.start)
        #expect(session.timerFired(at: Self.start + .seconds(10)).contains(.closeSocket(code: 1002)))
    }

    @Test func `a server that does not speak the extension is left`() {
        var session = ClientSession(.init(), restoring: Self.stored())
        _ = session.started(at: Self.start)
        _ = session.socketOpened(at: Self.start)
        #expect(Self.receive(.hello(.init(uaid: "stranger")), &session).contains(.closeSocket(code: 1002)))
    }

    @Test func `an idle connection gets a ping, and ends without a pong`() {
        var session = Self.live()
        #expect(session.timerFired(at: Self.start + .seconds(30)) == [.send(.ping)])
        let actions = session.timerFired(at: Self.start + .seconds(40))
        #expect(actions.contains(.closeSocket(code: 4408)))
        #expect(actions.contains(.notifyAvailability(Availability(network: false, service: false))))
    }

    @Test func `the loss of a connection changes no channel and is followed by another attempt`() {
        var session = Self.live(Self.stored(.open))
        #expect(
            session.socketClosed(code: nil, at: Self.start, random: 0) == [
                .notifyAvailability(Self.reachable), .notifySubscriptions(.disconnected),
            ])
        #expect(session.channels[Self.name]?.state == .open)
        #expect(session.deadline == Self.start + .milliseconds(500))
        #expect(session.timerFired(at: Self.start + .milliseconds(500)) == [.wake])
        #expect(session.move == .openSocket(Self.identity))
    }

    @Test func `attempts that fail are made further and further apart until the server has caught up with us`() {
        var session = ClientSession(.init(), restoring: Self.stored())
        _ = session.started(at: Self.start)
        var now = Self.start
        for wait in [500, 1000, 2000] {
            _ = session.socketFailed(reachedServer: false, at: now, random: 0)
            #expect(session.deadline == now + .milliseconds(wait))
            now = now + .milliseconds(wait)
            _ = session.timerFired(at: now)
            _ = session.serverNotLocated(isReached: false, at: now, random: 0)
        }
        _ = session.socketOpened(at: now)
        _ = Self.receive(.hello(Self.hello), &session)
        _ = Self.receive(.caughtUp, &session)
        _ = session.socketClosed(code: 1011, at: now, random: 0)
        #expect(session.deadline == now + .milliseconds(500))
    }

    @Test func `goodbye delays the next attempt`() {
        var session = Self.live()
        _ = Self.receive(.goodbye(delaySeconds: 4), &session)
        _ = session.socketClosed(code: 1012, at: Self.start, random: 0)
        #expect(session.deadline == Self.start + .seconds(4))
    }

    @Test func `a client that was replaced stays away for long`() {
        var session = Self.live()
        _ = session.socketClosed(code: 4409, at: Self.start, random: 0)
        #expect(session.deadline == Self.start + .seconds(60))
        #expect(session.registration.identity == Self.identity)
    }

    @Test func `a client that was stopped does nothing until it is started`() {
        var session = Self.live()
        #expect(session.stopped() == [.notifyAvailability(Self.reachable), .notifySubscriptions(.disconnected)])
        #expect(session.socketClosed(code: nil, at: Self.start, random: 0).isEmpty)
        #expect(session.deadline == nil)
        #expect(session.move == .rest)
        #expect(session.started(at: Self.start) == [.wake])
    }

    // MARK: Channels

    @Test func `connect without a connection is sent when there is one`() throws {
        var session = ClientSession(.init(), restoring: Self.stored())
        _ = try session.connectRequested(Self.name, as: Self.id, deadline: nil)
        _ = session.started(at: Self.start)
        _ = session.socketOpened(at: Self.start)
        #expect(
            Self.receive(.hello(Self.hello), &session).contains(
                .send(.register(.init(channelID: Self.id.description, name: Self.name)))))
        let endpoint = "https://push.example.com/push/token"
        let actions = Self.receive(
            .register(.init(channelID: Self.id.description, status: 200, pushEndpoint: endpoint)), &session)
        #expect(actions.last == .deliver(.notifyOpened(token: "token", host: "push.example.com"), to: Self.name))
        #expect(session.channels[Self.name]?.endpoint?.text == endpoint)
    }

    @Test(arguments: [(400, 202), (409, 202), (500, 500), (200, 500)])
    func `a registration that fails is an error of the channel`(_ status: Int, _ code: Int) throws {
        var session = Self.live()
        _ = try session.connectRequested(Self.name, as: Self.id, deadline: nil)
        let actions = Self.receive(.register(.init(channelID: Self.id.description, status: status)), &session)
        #expect(actions.last == .deliver(.notifyError(code: code), to: Self.name))
        // The reason is stored before any listener is notified.
        #expect(actions.first?.kind == "noteFailure")
    }

    @Test func `a connect that timed out is an error, and its registration is withdrawn`() throws {
        var session = Self.live()
        _ = try session.connectRequested(Self.name, as: Self.id, deadline: Self.start + .seconds(5))
        #expect(session.deadline == Self.start + .seconds(5))
        let actions = session.timerFired(at: Self.start + .seconds(5))
        #expect(actions.contains(.deliver(.notifyError(code: 0), to: Self.name)))
        #expect(actions.contains(.write(.saveWithdrawal(Self.id))))
        #expect(actions.contains(.send(.unregister(channelID: Self.id.description, code: 200))))
        // The late answer opens nothing.
        #expect(
            Self.receive(
                .register(.init(channelID: Self.id.description, status: 200, pushEndpoint: "https://h/t")), &session
            ).isEmpty)
        #expect(
            Self.receive(.unregister(channelID: Self.id.description, status: 200), &session)
                == [.write(.removeWithdrawal(Self.id))])
    }

    @Test func `wanting a channel open that is connecting shortens its time, and never lengthens it`() throws {
        var session = Self.live()
        func want(_ seconds: Int?) throws -> [SessionAction] {
            try session.openRequested(
                Self.name, as: Self.id, keys: nil, deadline: seconds.map { Self.start + .seconds($0) })
        }
        #expect(try want(nil).contains(.send(.register(.init(channelID: Self.id.description, name: Self.name)))))
        for (seconds, deadline) in [(20, 20), (5, 5), (9, 5), (nil, 5)] {
            #expect(try want(seconds).isEmpty)
            #expect(session.channels.connectDeadlines[Self.name] == Self.start + .seconds(deadline))
        }
    }

    @Test func `a disconnect that the server cannot perform now is repeated`() {
        var session = Self.live(Self.stored(.open))
        let unregister = SessionAction.send(.unregister(channelID: Self.id.description, code: 200))
        #expect(session.disconnectRequested(Self.name).contains(unregister))
        #expect(Self.receive(.unregister(channelID: Self.id.description, status: 500), &session).isEmpty)
        #expect(session.timerFired(at: Self.start + .seconds(5)) == [unregister])
        let actions = Self.receive(.unregister(channelID: Self.id.description, status: 200), &session)
        #expect(actions.last == .deliver(.notifyClosed(token: "token"), to: Self.name))
    }

    @Test func `misuse is refused and changes nothing`() throws {
        var session = Self.live(Self.stored(.open))
        #expect(throws: PushError.self) {
            _ = try session.connectRequested(Self.name, as: ChannelID(Bytes16(high: 9, low: 9)), deadline: nil)
        }
        #expect(session.channels.identifiers == [Self.id: Self.name])
        #expect(session.disconnectRequested("never.connected").isEmpty)
        #expect(session.channels["never.connected"] == nil)
    }

    @Test func `an event of the server is stored, reported and acknowledged`() {
        var session = Self.live(Self.stored(.open))
        let event = ChannelEventFrame(channelID: Self.id.description, version: "e", event: .error(code: 510))
        let actions = Self.receive(.channelEvent(event), &session)
        #expect(actions.map(\.kind) == ["write", "deliver", "send"])
        #expect(actions.last == .send(.ack([.init(version: "e", code: 100)])))
        // It may be delivered again: it is acknowledged again, and not reported.
        #expect(Self.receive(.channelEvent(event), &session) == [.send(.ack([.init(version: "e", code: 100)]))])
    }

    @Test(arguments: [ChannelEventFrame.Event.pingFailed(code: 605), .recovered])
    func `an event about the backend leaves the channel and its withdrawals unchanged`(event: ChannelEventFrame.Event) {
        var session = Self.live(Self.stored(.open))
        let frame = ChannelEventFrame(channelID: Self.id.description, version: "e", event: event)
        let actions = Self.receive(.channelEvent(frame), &session)
        #expect(actions.last == .send(.ack([.init(version: "e", code: 100)])))
        #expect(session.channels[Self.name]?.state == .open)
        session.channels.withdrawals.insert(Self.id)
        _ = Self.receive(.channelEvent(frame), &session)
        #expect(session.channels.withdrawals == [Self.id])
    }

    @Test(arguments: [ChannelEventFrame.Event.pingFailed(code: 605), .recovered])
    func `an event about the backend with a lost acknowledgement is acknowledged again, and not reported again`(
        event: ChannelEventFrame.Event
    ) {
        var session = Self.live(Self.stored(.open))
        let frame = ChannelEventFrame(channelID: Self.id.description, version: "e", event: event)
        let first = Self.receive(.channelEvent(frame), &session)
        #expect(first.contains(.write(.saveAnswer(MessageAnswer(id: "e", code: 100)))))
        #expect(
            Self.receive(.channelEvent(frame), &session, handled: 100)
                == [.send(.ack([.init(version: "e", code: 100)]))])
        #expect(Self.receive(.channelEvent(frame), &session) == first, "another one like it is reported")
    }

    @Test(arguments: [nil, ContentCoding(.identity)])
    func `an encrypted channel shows nothing that arrived as plain bytes, with any label`(coding: ContentCoding?) {
        var stored = Self.stored()
        stored.channels[Self.name] = ChannelMachine(
            state: .open, channelID: Self.id, endpoint: ChannelEndpoint("https://h/push/token"), lastErrorCode: nil,
            keys: SubscriptionKeys())
        var session = Self.live(stored)
        let frame = NotificationFrame(channelID: Self.id.description, version: "v", body: [1], coding: coding)
        let actions = Self.receive(.notification(frame), &session)
        #expect(
            actions == [
                .send(.ack([.init(version: "v", code: 101)])), .noteUndecryptable(id: "v", Self.name, .notEncrypted),
            ])
    }
}

extension SessionAction {
    var kind: String { String("\(self)".prefix { $0 != "(" }) }
}
