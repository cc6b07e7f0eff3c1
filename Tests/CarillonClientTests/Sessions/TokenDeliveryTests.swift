import CarillonWire
import Testing

@testable import CarillonClient

struct TokenDeliveryTests {
    private typealias Base = ClientSessionTests

    private static let start = Base.start
    private static let endpoint = "https://push.example.com/push/token"

    /// A live session with a hook, and a channel that has just opened.
    private func opened() throws -> (ClientSession, [SessionAction]) {
        var session = Base.live()
        _ = session.tokenDeliverySet(Base.name, isSet: true, at: Self.start)
        _ = try session.connectRequested(Base.name, as: Base.id, deadline: nil)
        let answer = ServerFrame.Registered(channelID: Base.id.description, status: 200, pushEndpoint: Self.endpoint)
        let actions = Base.receive(.register(answer), &session)
        return (session, actions)
    }

    private func deliveries(_ actions: [SessionAction]) -> [String] {
        actions.compactMap { if case .deliverToken(let address, to: Base.name) = $0 { address.token } else { nil } }
    }

    private func lost() -> ServerFrame {
        .channelEvent(.init(channelID: Base.id.description, version: "1.a", event: .pingFailed(code: 605)))
    }

    @Test func `the token is delivered when the channel has opened, once`() throws {
        var (session, actions) = try opened()
        #expect(deliveries(actions) == ["token"])
        let done = session.tokenDelivered(Base.name, token: "token", at: Self.start)
        #expect(session.channels[Base.name]?.isTokenDue == false)
        #expect(done.count == 1)
        #expect(deliveries(session.timerFired(at: Self.start + .seconds(1000))).isEmpty)
    }

    @Test func `a delivery that failed is repeated after a while, and not before`() throws {
        var (session, _) = try opened()
        _ = session.tokenDeliveryFailed(Base.name, at: Self.start, random: 0)
        let next = try #require(session.nextTokenDelivery)
        #expect(next == Self.start + session.settings.backOff.initial)
        #expect(deliveries(session.timerFired(at: next - .milliseconds(1))).isEmpty)
        #expect(deliveries(session.timerFired(at: next)) == ["token"])
        _ = session.tokenDeliveryFailed(Base.name, at: next, random: 0)
        #expect(session.nextTokenDelivery == next + session.settings.backOff.initial * 2)
    }

    @Test func `a backend that lost the token receives it again, and the channel stays open`() throws {
        var (session, _) = try opened()
        _ = session.tokenDelivered(Base.name, token: "token", at: Self.start)
        let actions = Base.receive(lost(), &session)
        #expect(deliveries(actions) == ["token"])
        #expect(actions.contains(.deliver(.notifyPingFailed(code: 605), to: Base.name)))
        #expect(session.channels[Base.name]?.state == .open)
    }

    @Test func `a token that is lost while it is being delivered is delivered once more`() throws {
        var (session, _) = try opened()
        #expect(deliveries(Base.receive(lost(), &session)).isEmpty)
        #expect(deliveries(session.tokenDelivered(Base.name, token: "token", at: Self.start)) == ["token"])
        #expect(deliveries(session.tokenDelivered(Base.name, token: "token", at: Self.start)).isEmpty)
        #expect(session.channels[Base.name]?.isTokenDue == false)
    }

    @Test(arguments: [600, 601, 602, 603, 604])
    func `any other failure delivers nothing`(code: Int) throws {
        var (session, _) = try opened()
        _ = session.tokenDelivered(Base.name, token: "token", at: Self.start)
        let event = ChannelEventFrame(channelID: Base.id.description, version: "1.a", event: .pingFailed(code: code))
        let actions = Base.receive(.channelEvent(event), &session)
        #expect(deliveries(actions).isEmpty)
        #expect(actions.contains(.deliver(.notifyPingFailed(code: code), to: Base.name)))
    }

    @Test func `a due token is delivered at the start, and when the hook is set late`() throws {
        var stored = StoredState(identity: Base.identity)
        stored.channels[Base.name] = ChannelMachine(
            state: .open, channelID: Base.id, endpoint: ChannelEndpoint(Self.endpoint), lastErrorCode: nil, isTokenDue: true)
        var early = ClientSession(.init(), restoring: stored)
        #expect(deliveries(early.tokenDeliverySet(Base.name, isSet: true, at: Self.start)).isEmpty)
        #expect(deliveries(early.started(at: Self.start)) == ["token"])
        var late = ClientSession(.init(), restoring: stored)
        #expect(deliveries(late.started(at: Self.start)).isEmpty)
        #expect(deliveries(late.tokenDeliverySet(Base.name, isSet: true, at: Self.start)) == ["token"])
    }

    @Test func `nothing is delivered after the channel has ended, or while the client does not run`() throws {
        var (session, _) = try opened()
        _ = session.tokenDeliveryFailed(Base.name, at: Self.start, random: 0)
        var closed = session
        let end = ChannelEventFrame(channelID: Base.id.description, version: "1.a", event: .closed)
        _ = Base.receive(.channelEvent(end), &closed)
        #expect(closed.nextTokenDelivery == nil)
        #expect(deliveries(closed.timerFired(at: Self.start + .seconds(1000))).isEmpty)
        _ = session.stopped()
        #expect(session.deadline == nil)
        #expect(deliveries(session.timerFired(at: Self.start + .seconds(1000))).isEmpty)
        #expect(deliveries(session.started(at: Self.start)) == ["token"])
    }

    @Test func `an event of a newer server is acknowledged, and has no effect`() throws {
        var (session, _) = try opened()
        let before = session.channels.machines
        let event = ChannelEventFrame(channelID: Base.id.description, version: "1.a", event: .other("future"))
        #expect(Base.receive(.channelEvent(event), &session) == [.send(.ack([.init(version: "1.a", code: 102)]))])
        #expect(session.channels.machines == before)
    }

    @Test func `recovery is reported, and changes nothing`() throws {
        var (session, _) = try opened()
        let event = ChannelEventFrame(channelID: Base.id.description, version: "1.a", event: .recovered)
        let actions = Base.receive(.channelEvent(event), &session)
        #expect(actions.contains(.deliver(.notifyRecovered, to: Base.name)))
        #expect(session.channels[Base.name]?.state == .open)
    }
}
