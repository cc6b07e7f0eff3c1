import CarillonWire
import Testing

@testable import CarillonClient

/// The path of messages between the server and the app.
struct BufferedMessagesTests {
    private typealias Base = ClientSessionTests

    private static let start = Base.start
    private static let name = Base.name

    private static func session(
        _ buffer: PushClient.ChannelBuffer = .init(), channels: [String: ChannelID] = [name: Base.id]
    ) -> ClientSession {
        var stored = StoredState(identity: Base.identity)
        for (name, id) in channels {
            stored.channels[name] = ChannelMachine(
                state: .open, channelID: id, endpoint: ChannelEndpoint("https://h/push/token"), lastErrorCode: nil)
        }
        var session = ClientSession(.init(buffer: buffer), restoring: stored)
        _ = session.started(at: start)
        _ = session.socketOpened(at: start)
        _ = session.received(.hello(Base.hello), answered: nil, at: start, random: 0)
        return session
    }

    private static func message(_ version: String, bytes: Int = 0, on channel: ChannelID = Base.id) -> ServerFrame {
        .notification(
            NotificationFrame(
                channelID: channel.description, version: version, body: [UInt8](repeating: 1, count: bytes),
                coding: bytes == 0 ? nil : ContentCoding(.identity)))
    }

    private static func buffered(_ version: String, _ position: Int64, bytes: Int = 0) -> BufferedMessage {
        BufferedMessage(
            position: position, id: version, body: [UInt8](repeating: 1, count: bytes),
            coding: bytes == 0 ? nil : ContentCoding(.identity))
    }

    private func ack(_ version: String, _ code: Int = 100) -> SessionAction {
        .send(.ack([.init(version: version, code: code)]))
    }

    // MARK: Receipt

    @Test(arguments: [ChannelState.open, .disconnecting])
    func `a message is stored, acknowledged as received, and then shown`(_ state: ChannelState) {
        var session = Base.live(Base.stored(state))
        let message = Self.buffered("m", 1)
        #expect(
            Base.receive(Self.message("m"), &session) == [
                .write(.saveMessage(message, of: Self.name)), .write(.saveAnswer(MessageAnswer(id: "m", code: 100))),
                ack("m"), .deliverMessage(message, to: Self.name),
            ])
    }

    @Test(arguments: [100, 301, 303]) func `a repeated message is answered as before, and not shown`(code: Int) {
        var session = Self.session()
        #expect(
            Base.receive(Self.message("m"), &session, handled: code)
                == [.send(MessageAnswer(id: "m", code: code).frame)])
    }

    @Test(arguments: [ChannelState.closed, .error, .connecting])
    func `a message that nobody can take does not stay in the way`(_ state: ChannelState) {
        var session = Base.live(Base.stored(state))
        #expect(Base.receive(Self.message("m"), &session) == [ack("m", 102)])
    }

    @Test func `a channel that nobody reads delays no other`() {
        let other = ChannelID(Bytes16(high: 7, low: 7))
        var session = Self.session(channels: [Self.name: Base.id, "other": other])
        for number in 0..<200 {
            #expect(Base.receive(Self.message("\(number)"), &session).contains(ack("\(number)")))
        }
        let actions = Base.receive(Self.message("last", on: other), &session)
        #expect(actions.contains(ack("last")))
        #expect(actions.last == .deliverMessage(Self.buffered("last", 201), to: "other"))
    }

    // MARK: Full

    @Test func `a full buffer refuses messages, reports it once, and accepts messages again when it has space`() {
        var session = Self.session(.init(messages: 2, bytes: 1 << 20))
        _ = Base.receive(Self.message("a"), &session)
        _ = Base.receive(Self.message("b"), &session)
        let refusal = MessageAnswer(id: "c", code: 303)
        #expect(
            Base.receive(Self.message("c"), &session) == [
                .write(.saveAnswer(refusal)), .send(.nack(version: "c", code: 303)),
                .noteFullBuffer(of: Self.name, waiting: 2),
            ])
        #expect(Base.receive(Self.message("d"), &session).map(\.kind) == ["write", "send"])
        _ = session.messageHandled(Self.buffered("a", 1), of: Self.name, failure: nil, isStored: true)
        #expect(Base.receive(Self.message("e"), &session).last?.kind == "deliverMessage")
        #expect(Base.receive(Self.message("f"), &session).last == .noteFullBuffer(of: Self.name, waiting: 2))
    }

    @Test func `a buffer is bounded in bytes, and a channel's is its own`() {
        let other = ChannelID(Bytes16(high: 7, low: 7))
        var session = Self.session(.init(messages: 100, bytes: 10), channels: [Self.name: Base.id, "other": other])
        _ = Base.receive(Self.message("a", bytes: 6), &session)
        #expect(Base.receive(Self.message("b", bytes: 5), &session).contains(.send(.nack(version: "b", code: 303))))
        #expect(Base.receive(Self.message("c", bytes: 4), &session).contains(ack("c")))
        #expect(Base.receive(Self.message("d", bytes: 10, on: other), &session).contains(ack("d")))
        _ = session.messageHandled(Self.buffered("a", 1, bytes: 6), of: Self.name, failure: nil, isStored: true)
        #expect(Base.receive(Self.message("e", bytes: 6), &session).contains(ack("e")))
        #expect(Base.receive(Self.message("f", bytes: 1), &session).contains(.send(.nack(version: "f", code: 303))))
    }

    @Test func `messages of an earlier run count`() {
        var stored = Base.stored(.open)
        stored.buffers[Self.name] = BufferUse(messages: 2, bytes: 0, lastPosition: 41)
        var session = ClientSession(.init(buffer: .init(messages: 3, bytes: 1 << 20)), restoring: stored)
        _ = session.started(at: Self.start)
        _ = session.socketOpened(at: Self.start)
        _ = session.received(.hello(Base.hello), answered: nil, at: Self.start, random: 0)
        #expect(Base.receive(Self.message("a"), &session).last == .deliverMessage(Self.buffered("a", 42), to: Self.name))
        #expect(Base.receive(Self.message("b"), &session).last == .noteFullBuffer(of: Self.name, waiting: 3))
    }

    // MARK: Handling

    @Test func `a handled message leaves the store, and the server receives nothing more`() {
        var session = Self.session()
        _ = Base.receive(Self.message("m"), &session)
        let message = Self.buffered("m", 1)
        #expect(
            session.messageHandled(message, of: Self.name, failure: nil, isStored: true)
                == [.write(.removeMessage(position: 1))])
        #expect(session.messages.buffers[Self.name]?.messages == 0)
        #expect(session.messageHandled(message, of: Self.name, failure: 301, isStored: false).isEmpty)
        #expect(session.messages.buffers[Self.name]?.messages == 0)
    }

    @Test(arguments: [301, 302, 303]) func `a later failure of a handler is reported`(code: Int) {
        var session = Self.session()
        _ = Base.receive(Self.message("m"), &session)
        #expect(
            session.messageHandled(Self.buffered("m", 1), of: Self.name, failure: code, isStored: true) == [
                .write(.removeMessage(position: 1)), .write(.saveAnswer(MessageAnswer(id: "m", code: code))),
                .send(.nack(version: "m", code: code)),
            ])
    }

    @Test func `a failure without a connection is reported at the next one, also by another process, and once`() {
        var session = Self.session()
        _ = Base.receive(Self.message("m"), &session)
        _ = session.socketClosed(code: nil, at: Self.start, random: 0)
        let report = MessageAnswer(id: "m", code: 301)
        #expect(
            session.messageHandled(Self.buffered("m", 1), of: Self.name, failure: 301, isStored: true).last
                == .write(.saveReport(report)))
        var stored = Base.stored(.open)
        stored.reports = [report]
        for var session in [session, ClientSession(.init(), restoring: stored)] {
            _ = session.started(at: Self.start)
            _ = session.timerFired(at: Self.start + .seconds(1))
            _ = session.socketOpened(at: Self.start)
            let actions = Base.receive(.hello(Base.hello), &session)
            #expect(actions.prefix(2) == [.send(.nack(version: "m", code: 301)), .write(.removeReports)])
            _ = session.socketClosed(code: nil, at: Self.start, random: 0)
            _ = session.timerFired(at: Self.start + .seconds(2))
            _ = session.socketOpened(at: Self.start)
            #expect(!Base.receive(.hello(Base.hello), &session).contains(.write(.removeReports)))
        }
    }

    @Test func `reports are bounded, and the oldest one is dropped`() {
        var session = Self.session()
        _ = session.socketClosed(code: nil, at: Self.start, random: 0)
        for number in 1...(SessionMessages.reportsLimit + 1) {
            _ = session.messageHandled(
                Self.buffered("\(number)", Int64(number)), of: Self.name, failure: 301, isStored: true)
        }
        #expect(session.messages.reports.count == SessionMessages.reportsLimit)
        #expect(session.messages.reports.first?.id == "2")
    }

    // MARK: Readers

    @Test func `messages that wait for long are checked less and less often`() {
        var session = Self.session()
        _ = Base.receive(Self.message("a"), &session)
        _ = Base.receive(.pong, &session)
        let due = Self.start + .seconds(30)
        #expect(session.deadline == due)
        #expect(!session.timerFired(at: due - .milliseconds(1)).contains { $0.kind == "checkForReader" })
        #expect(session.timerFired(at: due).contains(.checkForReader(of: Self.name, waiting: 1)))
        _ = Base.receive(Self.message("b"), &session)
        #expect(!session.timerFired(at: due + .seconds(59)).contains { $0.kind == "checkForReader" })
        #expect(session.timerFired(at: due + .seconds(60)).contains(.checkForReader(of: Self.name, waiting: 2)))
        #expect(!session.timerFired(at: due + .seconds(179)).contains { $0.kind == "checkForReader" })
    }

    @Test(arguments: [(0, 30), (1, 60), (15, 983_040), (16, 1_966_080), (17, 1_966_080), (1000, 1_966_080)])
    func `the delay before a check doubles with each of the first 16 checks`(checks: Int, seconds: Int) {
        var use = BufferUse(messages: 1, checks: checks)
        use.scheduleCheck(from: Self.start, .seconds(30))
        #expect(use.checkAt == Self.start + .seconds(seconds))
    }

    @Test func `a channel without messages has no check`() {
        var use = BufferUse(messages: 1)
        use.scheduleCheck(from: Self.start, .seconds(30))
        use.removed(bytes: 0)
        #expect(use.checkAt == nil)
        use.scheduleCheck(from: Self.start, .seconds(30))
        #expect(use.checkAt == nil)
    }

    @Test func `a channel with read messages is not checked`() {
        var session = Self.session()
        _ = Base.receive(Self.message("a"), &session)
        _ = session.messageHandled(Self.buffered("a", 1), of: Self.name, failure: nil, isStored: true)
        #expect(!session.timerFired(at: Self.start + .seconds(60)).contains { $0.kind == "checkForReader" })
    }

    @Test func `messages of an earlier run are checked as well`() {
        var stored = Base.stored(.open)
        stored.buffers[Self.name] = BufferUse(messages: 2, bytes: 0, lastPosition: 41)
        var session = ClientSession(.init(), restoring: stored)
        _ = session.started(at: Self.start)
        #expect(
            session.timerFired(at: Self.start + .seconds(30)).contains(.checkForReader(of: Self.name, waiting: 2)))
    }

    // MARK: The end

    @Test func `a channel that no code knows is discarded in every state, and the server is notified`() {
        for state in ChannelState.allCases {
            var session = Base.live(Base.stored(state))
            let actions = session.channelDiscarded(Self.name)
            #expect(session.channels[Self.name] == nil)
            #expect(session.channels.identifiers.isEmpty)
            #expect(actions.contains(.write(.removeChannel(identifier: Self.name))))
            #expect(actions.contains(.dropMessages(of: Self.name)))
            let isAlive = [.connecting, .open, .disconnecting].contains(state)
            #expect(actions.contains(.write(.saveWithdrawal(Base.id))) == isAlive)
            #expect(actions.contains(.send(.unregister(channelID: Base.id.description, code: 200))) == isAlive)
            #expect(actions.contains(.deliver(.notifyClosed(token: "token"), to: Self.name)) == isAlive)
            #expect(session.channelDiscarded(Self.name).isEmpty)
        }
    }

    @Test func `a connecting channel that is closed is withdrawn, and its late answer opens nothing`() throws {
        var session = Base.live()
        _ = try session.connectRequested(Self.name, as: Base.id, deadline: Self.start + .seconds(5))
        let actions = session.disconnectRequested(Self.name)
        #expect(actions.contains(.deliver(.notifyClosed(token: ""), to: Self.name)))
        #expect(actions.contains(.write(.saveWithdrawal(Base.id))))
        #expect(actions.last == .send(.unregister(channelID: Base.id.description, code: 200)))
        #expect(session.channels[Self.name]?.state == .closed)
        #expect(session.channels.connectDeadlines.isEmpty)
        let answer = ServerFrame.Registered(
            channelID: Base.id.description, status: 200, pushEndpoint: "https://h/push/late")
        #expect(Base.receive(.register(answer), &session).isEmpty)
    }
}
