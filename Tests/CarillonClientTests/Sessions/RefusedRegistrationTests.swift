import CarillonMessages
import CarillonWire
import Testing

@testable import CarillonClient

/// What the client makes of a `register` frame that refuses a channel.
struct RefusedRegistrationTests {
    private typealias Base = ClientSessionTests

    private static let registration = SessionAction.send(
        .register(.init(channelID: Base.id.description, name: Base.name)))

    private static func connecting() throws -> ClientSession {
        var session = Base.live()
        #expect(try session.connectRequested(Base.name, as: Base.id, deadline: nil).contains(registration))
        return session
    }

    private static func refusal(_ status: Int, _ code: String? = nil, after seconds: Int? = nil) -> ServerFrame {
        .register(.init(channelID: Base.id.description, status: status, code: code, retryAfterSeconds: seconds))
    }

    @Test(arguments: [(3, 3), (nil, 5), (0, 1), (-7, 1), (Int.max, 86_400)] as [(Int?, Int)])
    func `a registration that may succeed later is repeated when the server says so`(hint: Int?, seconds: Int) throws {
        var session = try Self.connecting()
        let actions = Base.receive(Self.refusal(500, "rate_limited", after: hint), &session)
        #expect(actions.map(\.kind) == ["noteFailure"])
        #expect(session.channels[Base.name]?.state == .connecting)
        let due = Base.start + .seconds(seconds)
        #expect(try #require(session.deadline) <= due)
        // Signs of life, so that the connection lasts.
        session.receivedSignOfLife(at: due)
        #expect(!session.timerFired(at: due - .milliseconds(1)).contains(Self.registration))
        #expect(session.timerFired(at: due).contains(Self.registration))
        #expect(!session.timerFired(at: due + .milliseconds(1)).contains(Self.registration))
        let answer = ServerFrame.Registered(
            channelID: Base.id.description, status: 200, pushEndpoint: "https://push.example.com/push/token")
        #expect(
            Base.receive(.register(answer), &session)
                .contains(.deliver(.tellOpened(token: "token", host: "push.example.com"), to: Base.name)))
    }

    @Test(
        arguments: [
            (500, "channels_too_many", 202), (500, "devices_too_many", 202), (400, "field_invalid", 202), (400, nil, 202),
            (500, nil, 500), (429, nil, 202), (400, "code_of_later", 202), (500, "code_of_later", 500), (200, nil, 500),
        ] as [(Int, String?, Int)])
    func `any other refusal fails the channel, by the code where it is known`(
        status: Int, code: String?, error: Int
    ) throws {
        var session = try Self.connecting()
        let actions = Base.receive(Self.refusal(status, code, after: 1), &session)
        #expect(actions.contains(.deliver(.tellError(code: error), to: Base.name)))
        #expect(actions.first?.kind == "noteFailure")
        #expect(!session.timerFired(at: Base.start + .seconds(6)).contains(Self.registration))
    }

    @Test func `a channel that was given up is not registered again`() throws {
        var session = try Self.connecting()
        _ = Base.receive(Self.refusal(500, "rate_limited", after: 3), &session)
        _ = session.disconnectRequested(Base.name)
        #expect(!session.timerFired(at: Base.start + .seconds(3)).contains(Self.registration))
    }

    @Test func `a channel that was opened anew is not registered again under its former name`() throws {
        var session = try Self.connecting()
        _ = Base.receive(Self.refusal(500, "rate_limited", after: 3), &session)
        _ = session.disconnectRequested(Base.name)
        _ = try session.connectRequested(Base.name, as: ChannelID(Bytes16(high: 1, low: 3)), deadline: nil)
        #expect(!session.timerFired(at: Base.start + .seconds(3)).map(\.kind).contains("send"))
    }

    @Test func `a new connection registers at once, and not again`() throws {
        var session = try Self.connecting()
        _ = Base.receive(Self.refusal(500, "rate_limited", after: 60), &session)
        _ = session.socketClosed(code: 1012, at: Base.start, random: 0)
        let later = Base.start + .seconds(50)
        _ = session.timerFired(at: later)
        _ = session.socketOpened(at: later)
        let actions = session.received(.hello(Base.hello), answered: nil, at: later)
        #expect(actions.contains(Self.registration))
        #expect(!session.timerFired(at: Base.start + .seconds(60)).contains(Self.registration))
    }
}
