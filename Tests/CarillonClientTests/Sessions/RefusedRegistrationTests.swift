import CarillonMessages
import CarillonWire
import Testing

@testable import CarillonClient

/// The client's reaction to a `register` frame that refuses a channel.
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

    private static func channelID(_ number: UInt64) -> ChannelID { ChannelID(Bytes16(high: 2, low: number)) }

    /// A session with three more channels that are connecting.
    private static func connectingThree() throws -> ClientSession {
        var session = Base.live()
        for number in 1...3 as ClosedRange<UInt64> {
            _ = try session.connectRequested("channel \(number)", as: channelID(number), deadline: nil)
        }
        return session
    }

    private static func answer(
        _ number: UInt64, _ status: Int, code: String? = nil, after seconds: Int? = nil, _ session: inout ClientSession,
        at now: ContinuousClock.Instant, random: Double = 0
    ) -> [SessionAction] {
        let answer = ServerFrame.Registered(
            channelID: channelID(number).description, status: status,
            pushEndpoint: status == 200 ? "https://push.example.com/push/token" : nil, code: code, retryAfterSeconds: seconds
        )
        return session.received(.register(answer), answered: nil, at: now, random: random)
    }

    /// The numbers of the channels that are registered.
    private static func registered(_ actions: [SessionAction]) -> [UInt64] {
        (1...3).filter { number in
            let frame = ClientFrame.register(
                .init(channelID: channelID(number).description, name: "channel \(number)"))
            return actions.contains(.send(frame))
        }
    }

    @Test(arguments: [(3, 3), (nil, 5), (0, 1), (-7, 1), (Int.max, 86_400)] as [(Int?, Int)])
    func `a registration that may succeed later is repeated when the server allows it`(hint: Int?, seconds: Int) throws {
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
                .contains(.deliver(.notifyOpened(token: "token", host: "push.example.com"), to: Base.name)))
    }

    @Test(
        arguments: [
            (500, "channels_too_many", 500), (500, "devices_too_many", 500), (400, "field_invalid", 202), (400, nil, 202),
            (500, nil, 500), (400, "code_of_later", 202), (500, "code_of_later", 500), (200, nil, 500),
        ] as [(Int, String?, Int)])
    func `any other refusal fails the channel, by its code if the code is known`(
        status: Int, code: String?, error: Int
    ) throws {
        var session = try Self.connecting()
        let actions = Base.receive(Self.refusal(status, code, after: 1), &session)
        #expect(actions.contains(.deliver(.notifyError(code: error), to: Base.name)))
        #expect(actions.first?.kind == "noteFailure")
        #expect(!session.timerFired(at: Base.start + .seconds(6)).contains(Self.registration))
    }

    @Test(arguments: [(429, nil), (429, "rate_limited"), (429, "code_of_later"), (400, "rate_limited")] as [(Int, String?)])
    func `a rate limit is not final, however the server reports it`(status: Int, code: String?) throws {
        var session = try Self.connecting()
        let actions = Base.receive(Self.refusal(status, code), &session)
        #expect(actions.map(\.kind) == ["noteFailure"])
        #expect(session.channels[Base.name]?.state == .connecting)
        session.receivedSignOfLife(at: Base.start + .seconds(5))
        #expect(session.timerFired(at: Base.start + .seconds(5)).contains(Self.registration))
    }

    @Test func `channels are registered again one after another`() throws {
        var session = try Self.connectingThree()
        for number in 1...3 as ClosedRange<UInt64> {
            let actions = Self.answer(number, 500, code: "rate_limited", after: Int(number), &session, at: Base.start)
            #expect(actions.map(\.kind) == ["noteFailure"])
        }
        #expect(Self.registered(session.timerFired(at: Base.start + .milliseconds(2999))) == [])
        let due = Base.start + .seconds(3)
        #expect(Self.registered(session.timerFired(at: due)) == [1])
        #expect(Self.registered(session.timerFired(at: due + .seconds(1))) == [])
        #expect(Self.registered(Self.answer(1, 200, &session, at: due + .seconds(1))) == [2])
        // A channel that fails for good does not stop the others.
        #expect(Self.registered(Self.answer(2, 400, code: "field_invalid", &session, at: due + .seconds(1))) == [3])
        #expect(Self.registered(Self.answer(3, 200, &session, at: due + .seconds(1))) == [])
    }

    @Test func `a channel that was closed during a new registration does not stop the others`() throws {
        var session = try Self.connectingThree()
        for number in 1...3 as ClosedRange<UInt64> {
            _ = Self.answer(number, 500, code: "rate_limited", after: 1, &session, at: Base.start)
        }
        let due = Base.start + .seconds(1)
        #expect(Self.registered(session.timerFired(at: due)) == [1])
        _ = session.disconnectRequested("channel 1")
        _ = session.disconnectRequested("channel 2")
        #expect(Self.registered(Self.answer(1, 200, &session, at: due)) == [3])
    }

    @Test func `the wait grows with each failure, begins anew after a success, and is random`() throws {
        var session = try Self.connectingThree()
        var now = Base.start
        /// Refuses the channel, and returns the wait until it is registered again.
        func wait(_ number: UInt64, random: Double = 0) throws -> Duration {
            _ = Self.answer(number, 500, code: "rate_limited", after: 1, &session, at: now, random: random)
            let wait = try #require(session.channels.registrationRetries.dueAt) - now
            now += wait
            session.receivedSignOfLife(at: now)
            #expect(Self.registered(session.timerFired(at: now)) == [number])
            return wait
        }
        let waits = try (0..<9).map { _ in try wait(1) }
        #expect(waits == [1, 1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) })
        _ = Self.answer(1, 200, &session, at: now)
        #expect(try wait(2) == .seconds(1))
        // Half a second at least, half of it left to chance.
        #expect(try wait(2, random: 1) == .milliseconds(1250))
    }

    @Test func `a closed channel is not registered again`() throws {
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
        let actions = session.received(.hello(Base.hello), answered: nil, at: later, random: 0)
        #expect(actions.contains(Self.registration))
        #expect(!session.timerFired(at: Base.start + .seconds(60)).contains(Self.registration))
    }
}
