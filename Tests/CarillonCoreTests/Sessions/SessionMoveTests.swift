import CarillonCore
import CarillonWire
import Testing

/// A socket in each of its states while its device moves to another home.
struct SessionMoveTests {
    private typealias Action = SessionMachine.Action

    private let identity = SessionMachine.Identity(owner: .device(Sample.device), uaid: "u")
    private let hello = Action.send(.hello(.init(uaid: "u", carillon: .init(keepAliveSeconds: 60))))
    private let load = Action.load(PageRequest(after: 0, limit: 4, bytes: 65_536), Sample.device)

    private func page(_ positions: Int64...) -> InboxPage {
        InboxPage(envelopes: positions.map { Sample.envelope($0) }, isComplete: true)
    }

    private func frame(_ position: Int64) -> Action { .send(ServerFrame(Sample.envelope(position))) }

    private func connected() -> SessionMachine {
        SessionMachine(settings: .init(window: .init(envelopes: 4, bytes: 100_000), keepAliveSeconds: 60))
    }

    private func identifying() -> SessionMachine {
        var machine = connected()
        _ = machine.received(.hello(.init(carillon: 1)))
        return machine
    }

    private func live() -> SessionMachine {
        var machine = identifying()
        _ = machine.identified(identity, page(), at: Sample.now)
        return machine
    }

    @Test func `a socket before its hello and a closed one are not concerned`() {
        var machine = connected()
        machine.moving()
        #expect(machine.moved(at: Sample.now) == [])
        _ = machine.received(.hello(.init(carillon: 1)))
        #expect(machine.identified(identity, page(1), at: Sample.now) == [hello, frame(1), .send(.caughtUp)])
        _ = machine.ended(because: .deviceGone)
        machine.moving()
        #expect(machine.moved(at: Sample.now) == [])
    }

    @Test func `a page that is answered during a move is loaded after it`() {
        var machine = identifying()
        machine.moving()
        #expect(machine.identified(identity, page(1), at: Sample.now) == [hello])
        #expect(machine.moved(at: Sample.now) == [load])
        #expect(machine.loaded(.page(page(1)), at: Sample.now) == [frame(1), .send(.caughtUp)])
    }

    @Test func `a page that was read before a move and is answered after it is loaded again`() {
        var machine = identifying()
        machine.moving()
        #expect(machine.moved(at: Sample.now) == [])
        #expect(machine.identified(identity, page(1), at: Sample.now) == [hello, load])
    }

    @Test func `an open socket delivers nothing during a move, accepts answers, and loads afterwards`() {
        var machine = live()
        #expect(machine.offered(Sample.envelope(1), isVolatile: false, at: Sample.now) == [frame(1)])
        machine.moving()
        #expect(machine.offered(Sample.envelope(2), isVolatile: false, at: Sample.now) == [])
        #expect(
            machine.offered(Sample.envelope(3, ttl: 0), isVolatile: true, at: Sample.now) == [
                .answerOffer(wasAccepted: false)
            ])
        #expect(
            machine.received(.ack([.init(version: Sample.id(1).description)])) == [
                .finish(Sample.id(1), Sample.device, .acknowledged, code: nil)
            ])
        #expect(machine.received(.unregister(channelID: Sample.channelID.description, code: nil)).count == 1)
        let behind = Action.load(PageRequest(after: 1, limit: 4, bytes: 65_536), Sample.device)
        #expect(machine.moved(at: Sample.now) == [behind])
        #expect(machine.loaded(.page(page(2)), at: Sample.now) == [frame(2)])
    }

    @Test func `an open socket loads at the new home, also if all its deliveries were answered in another way`() {
        var machine = live()
        for position in Int64(1)...5 { _ = machine.offered(Sample.envelope(position), isVolatile: false, at: Sample.now) }
        machine.moving()
        let behind = Action.load(PageRequest(after: 4, limit: 4, bytes: 65_536), Sample.device)
        #expect(machine.arrivedAgain(at: Sample.now) == [behind])
    }

    @Test func `an open socket with services is informed at the new home that providers can differ`() {
        var machine = connected()
        _ = machine.received(.hello(.init(carillon: CarillonVersion.ofExtension)))
        _ = machine.identified(identity, page(), at: Sample.now)
        machine.moving()
        #expect(machine.arrivedAgain(at: Sample.now) == [load, .send(.providersChanged)])
    }

    @Test func `an open socket whose peer does not read loads when it reads again`() {
        var machine = live()
        machine.outputPaused()
        machine.moving()
        #expect(machine.moved(at: Sample.now) == [])
        #expect(machine.outputResumed(at: Sample.now) == [load])
    }

    @Test func `a socket whose device arrives with its first channel during a move loads afterwards`() {
        var machine = connected()
        let userAgent = UserAgentID(random: Sample.random)
        _ = machine.received(.hello(.init()))
        _ = machine.identified(.init(owner: .provisional(userAgent), uaid: userAgent.text), at: Sample.now)
        let register = ClientFrame.Register(channelID: Sample.channelID.description)
        _ = machine.received(.register(register))
        _ = machine.answered(.registered(asWritten: register.channelID, endpoint: "e", device: Sample.device))
        machine.moving()
        #expect(machine.loaded(.page(page(1)), at: Sample.now) == [])
        #expect(machine.moved(at: Sample.now) == [load])
    }

    @Test func `a socket whose device moved to a home where it cannot arrive says goodbye`() {
        var machine = live()
        machine.moving()
        let actions = machine.ended(because: .moved)
        #expect(actions.first == .send(.goodbye(delaySeconds: 1)))
        guard case .close(.restart, _)? = actions.last else {
            Issue.record("it stays open")
            return
        }
    }
}
