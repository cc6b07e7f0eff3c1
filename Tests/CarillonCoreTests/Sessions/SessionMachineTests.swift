import CarillonCore
import CarillonWire
import Testing

struct SessionMachineTests {
    private let settings = SessionMachine.Settings(
        window: .init(envelopes: 4, bytes: 100_000), keepAliveSeconds: 60)

    private func open(isCarillon: Bool = true, caughtUp: Bool = true) -> SessionMachine {
        var machine = SessionMachine(settings: settings)
        _ = machine.received(.hello(.init(carillon: isCarillon ? 1 : nil)))
        _ = machine.identified(.init(owner: .device(Sample.device), uaid: "u"), at: Sample.now)
        if caughtUp { _ = machine.loaded(.page(.init(envelopes: [], isComplete: true)), at: Sample.now) }
        return machine
    }

    private func openOfVersion(_ version: Int) -> SessionMachine {
        var machine = SessionMachine(settings: settings)
        _ = machine.received(.hello(.init(carillon: version)))
        _ = machine.identified(
            .init(owner: .device(Sample.device), uaid: "u"), .init(envelopes: [], isComplete: true), at: Sample.now)
        return machine
    }

    @Test func `a client of version 3 sends one request after the other`() {
        var machine = openOfVersion(3)
        let one = ClientFrame.Request(id: 1, method: "GET", path: "/a")
        let two = ClientFrame.Request(id: 2, method: "PUT", path: "/b", body: [1])
        #expect(machine.received(.request(one)) == [.perform(.ask(.device(Sample.device), one))])
        #expect(machine.received(.request(two)).isEmpty)
        let answer = ServerFrame.Answer(id: 1, status: 200, body: [])
        #expect(
            machine.answered(.asked(answer)) == [.send(.answer(answer)), .perform(.ask(.device(Sample.device), two))])
        var older = openOfVersion(2)
        #expect(closeCode(older.received(.request(one))) == .protocolError)
    }

    @Test func `a request that takes too long is answered once, and later ones wait for its end`() {
        var machine = openOfVersion(3)
        for id in 1...2 { _ = machine.received(.request(.init(id: id, method: "PUT", path: "/a"))) }
        let refusal = ServerFrame.Answer(id: 1, status: 503, body: [])
        #expect(machine.isLate(refusal) == [.send(.answer(refusal))])
        let two = ClientFrame.Request(id: 2, method: "PUT", path: "/a")
        let answer = ServerFrame.Answer(id: 1, status: 200, body: [])
        #expect(machine.answered(.asked(answer)) == [.perform(.ask(.device(Sample.device), two))])
        // The number may be used again.
        _ = machine.answered(.asked(.init(id: 2, status: 200, body: [])))
        _ = machine.received(.request(.init(id: 1, method: "PUT", path: "/a")))
        #expect(machine.answered(.asked(answer)) == [.send(.answer(answer))])
    }

    @Test func `unanswered requests are bounded in bytes, and answers free the space`() {
        var machine = openOfVersion(3)
        func request(_ id: Int) -> ClientFrame {
            .request(.init(id: id, method: "PUT", path: "/", body: Array(repeating: 0, count: 60_000)))
        }
        for id in 0...8 { #expect(closeCode(machine.received(request(id))) == nil) }
        for id in 0..<9 {
            _ = machine.answered(.asked(.init(id: id, status: 200, body: [])))
            #expect(closeCode(machine.received(request(id))) == nil)
        }
        #expect(closeCode(machine.received(request(100))) == .policy)
    }

    private func closeCode(_ actions: [SessionMachine.Action]) -> CloseCode? {
        if case .close(let code, let reason)? = actions.last {
            #expect(reason.utf8.count <= 123)
            return code
        }
        return nil
    }

    private let load = PageRequest(after: 0, limit: 4, bytes: 65_536)

    @Test func `hello leads to identification with the first page, then to the answer and the inbox, in this order`() {
        var machine = SessionMachine(settings: settings)
        let hello = ClientFrame.Hello(carillon: 1, device: "d", credential: "c")
        #expect(machine.received(.hello(hello)) == [.identify(hello, load)])
        let page = InboxPage(envelopes: [Sample.envelope(1)], isComplete: true)
        #expect(
            machine.identified(.init(owner: .device(Sample.device), uaid: "u"), page, at: Sample.now) == [
                .send(.hello(.init(uaid: "u", carillon: .init(keepAliveSeconds: 60)))),
                .send(ServerFrame(Sample.envelope(1))), .send(.caughtUp),
            ])
    }

    @Test func `a page that could not be read with the device is read again`() {
        var machine = SessionMachine(settings: settings)
        _ = machine.received(.hello(ClientFrame.Hello(carillon: 1, device: "d", credential: "c")))
        #expect(
            machine.identified(.init(owner: .device(Sample.device), uaid: "u"), at: Sample.now) == [
                .send(.hello(.init(uaid: "u", carillon: .init(keepAliveSeconds: 60)))),
                .load(load, Sample.device),
            ])
    }

    @Test func `messages offered, withdrawn or lost between the device's arrival and its page are not missed`() {
        var machine = SessionMachine(settings: settings)
        _ = machine.received(.hello(.init(carillon: 1)))
        #expect(machine.offered(Sample.envelope(3), isVolatile: false, at: Sample.now).isEmpty)
        #expect(
            machine.offered(Sample.envelope(4, ttl: 0), isVolatile: true, at: Sample.now) == [
                .answerOffer(wasAccepted: false)
            ])
        #expect(machine.withdrew(.envelope(1)).isEmpty)
        let page = InboxPage(envelopes: [Sample.envelope(1), Sample.envelope(2)], isComplete: true)
        let actions = machine.identified(.init(owner: .device(Sample.device), uaid: "u"), page, at: Sample.now)
        #expect(
            Array(actions.dropFirst()) == [
                .send(ServerFrame(Sample.envelope(2))),
                .load(.init(after: 2, limit: 3, bytes: 65_536), Sample.device),
            ])
    }

    @Test func `a session that was replaced while its device was read is closed, and stays closed`() {
        var machine = SessionMachine(settings: settings)
        _ = machine.received(.hello(.init(carillon: 1)))
        #expect(closeCode(machine.ended(because: .replaced)) == .replaced)
        #expect(machine.identified(.init(owner: .device(Sample.device), uaid: "u"), at: Sample.now).isEmpty)
    }

    @Test func `an unknown frame type is ignored, and closes a client with Carillon's extension`() {
        let unknown = ClientFrame.unknown(type: "broadcast_v2")
        var browser = open(isCarillon: false)
        #expect(browser.received(unknown) == [])
        #expect(browser.received(.ping) == [.send(.pong)])
        var carillon = open()
        #expect(closeCode(carillon.received(unknown)) == .protocolError)
        #expect(carillon.received(.ping) == [])
        var silent = SessionMachine(settings: settings)
        #expect(closeCode(silent.received(unknown)) == .protocolError)
    }

    @Test(arguments: [ClientFrame.ping, .ack([]), .register(.init(channelID: "x")), .nack(version: "x", code: nil)])
    func `anything before hello closes`(frame: ClientFrame) {
        var machine = SessionMachine(settings: settings)
        #expect(closeCode(machine.received(frame)) == .protocolError)
        #expect(machine.received(.hello(.init())).isEmpty)
    }

    @Test func `a second hello closes the session`() {
        var machine = open()
        #expect(closeCode(machine.received(.hello(.init()))) == .protocolError)
        #expect(machine.received(.ping).isEmpty)
    }

    @Test func `hello has a deadline`() {
        var machine = SessionMachine(settings: settings)
        #expect(closeCode(machine.helloTimedOut()) == .policy)
        var late = open()
        #expect(late.helloTimedOut().isEmpty)
    }

    @Test func `frames sent before the answer to hello are handled after it, in order, within a bound`() {
        var machine = SessionMachine(settings: settings)
        _ = machine.received(.hello(.init()))
        #expect(machine.received(.ping).isEmpty)
        let actions = machine.identified(.init(owner: .device(Sample.device), uaid: "u"), at: Sample.now)
        #expect(actions.last == .send(.pong))
        var flooded = SessionMachine(settings: settings)
        _ = flooded.received(.hello(.init()))
        var last: [SessionMachine.Action] = []
        for _ in 0..<100 where last.isEmpty { last = flooded.received(.ping) }
        #expect(closeCode(last) == .policy)
    }

    @Test(arguments: [(9, 64_000), (6, 99_000), (2001, 0)])
    func `requests that wait have a bound, by number and by bytes`(count: Int, bytes: Int) {
        func request(_ id: Int) -> ClientFrame {
            .request(.init(id: id, method: "PUT", path: "/a", body: Array(repeating: 7, count: bytes)))
        }
        var machine = openOfVersion(3)
        // The first does not wait.
        #expect(machine.received(request(0)).count == 1)
        for id in 1..<count { #expect(machine.received(request(id)).isEmpty, "\(id)") }
        #expect(closeCode(machine.received(request(count))) == .policy)
        // Answered requests do not wait any more.
        var other = openOfVersion(3)
        _ = other.received(request(0))
        for id in 1..<(count + 20) {
            #expect(other.received(request(id)).isEmpty)
            #expect(other.answered(.asked(.init(id: id - 1, status: 204, body: []))).count == 2)
        }
    }

    @Test func `requests are answered one after the other`() throws {
        var machine = open()
        let id = Sample.channelID
        let register = ClientFrame.Register(channelID: id.description)
        #expect(machine.received(.register(register)) == [.perform(.register(.device(Sample.device), id, register))])
        #expect(machine.received(.unregister(channelID: id.description, code: 200)).isEmpty)
        let actions = machine.answered(
            .registered(asWritten: id.description, endpoint: "e", device: Sample.device))
        #expect(
            actions == [
                .send(.register(.init(channelID: id.description, status: 200, pushEndpoint: "e"))),
                .perform(.unregister(.device(Sample.device), id, asWritten: id.description)),
            ])
        #expect(
            machine.answered(.unregistered(asWritten: id.description))
                == [.send(.unregister(channelID: id.description, status: 200))])
    }

    @Test(arguments: [
        (ErrorCode.fieldInvalid, 400), (.credentialMissing, 400), (.channelsTooMany, 500), (.devicesTooMany, 500),
        (.rateLimited, 500), (.storageUnavailable, 500), (.deviceSuspended, 500),
    ])
    func `a refused registration is answered and the socket stays usable`(code: ErrorCode, status: Int) {
        let refusal = Refusal(code, "d", retryAfterSeconds: 7)
        var machine = open(isCarillon: false)
        _ = machine.received(.register(.init(channelID: Sample.channelID.description, key: "bad")))
        #expect(
            machine.answered(.registrationRefused(asWritten: "c", refusal))
                == [.send(.register(.init(channelID: "c", status: status)))])
        #expect(machine.received(.ping) == [.send(.pong)])

        var carillon = open()
        _ = carillon.received(.register(.init(channelID: Sample.channelID.description, key: "bad")))
        #expect(
            carillon.answered(.registrationRefused(asWritten: "c", refusal))
                == [
                    .send(.register(.init(channelID: "c", status: status, code: code.rawValue, retryAfterSeconds: 7)))
                ])
    }

    @Test func `a channel identifier without dashes closes`() {
        var machine = open()
        #expect(
            closeCode(machine.received(.register(.init(channelID: "c1e60f9b28e2417b9997234ebc94f72b")))) == .protocolError)
    }

    @Test func `a device that never registered is stored with its first channel, and joins then`() throws {
        var machine = SessionMachine(settings: settings)
        let userAgent = UserAgentID(random: Sample.random)
        _ = machine.received(.hello(.init()))
        #expect(
            machine.identified(.init(owner: .provisional(userAgent), uaid: userAgent.text), at: Sample.now)
                == [.send(.hello(.init(uaid: userAgent.text)))])
        #expect(machine.received(.ack([.init(version: Sample.id(1).description)])).isEmpty)
        let register = ClientFrame.Register(channelID: Sample.channelID.description)
        #expect(
            machine.received(.register(register))
                == [.perform(.register(.provisional(userAgent), Sample.channelID, register))])
        let actions = machine.answered(
            .registered(asWritten: register.channelID, endpoint: "e", device: DeviceSerial(9)))
        let load = PageRequest(after: 0, limit: 4, bytes: 65_536)
        #expect(actions.first == .arrive(userAgent, DeviceSerial(9), load, speaking: 0))
        #expect(machine.device == DeviceSerial(9))
        #expect(machine.offered(Sample.envelope(2), isVolatile: false, at: Sample.now).isEmpty)
        let page = InboxPage(envelopes: [Sample.envelope(1)], isComplete: true)
        let given = machine.loaded(.page(page), at: Sample.now)
        #expect(given.first == .send(ServerFrame(Sample.envelope(1))))
        #expect(machine.loaded(.deviceGone, at: Sample.now) == [.close(.gone, "gone: the device was deleted")])
    }

    @Test func `an acknowledgement, a code and a nack become outcomes`() {
        var machine = open()
        let ids = (1...4).map { Sample.id(Int64($0)) }
        #expect(
            machine.received(
                .ack([
                    .init(version: ids[0].description), .init(version: ids[1].description, code: 100),
                    .init(version: ids[2].description, code: 101), .init(version: "unknown"),
                ])) == [
                    .finish(ids[0], Sample.device, .acknowledged, code: nil),
                    .finish(ids[1], Sample.device, .acknowledged, code: 100),
                    .finish(ids[2], Sample.device, .failed, code: 101),
                ])
        #expect(
            machine.received(.nack(version: ids[3].description, code: nil))
                == [.finish(ids[3], Sample.device, .failed, code: 303)])
    }

    @Test(
        arguments: [
            (.channelClosed, .closed), (.channelError(code: 503), .error(code: 503)),
            (.pingFailed(.tokenLost), .pingFailed(code: 605)), (.recovered, .recovered),
        ] as [(Envelope.Kind, ChannelEventFrame.Event)])
    func `channel events are for Carillon clients only`(kind: Envelope.Kind, written: ChannelEventFrame.Event) {
        let event = Sample.envelope(1, kind: kind)
        var carillon = open()
        let frame = ServerFrame.channelEvent(
            .init(channelID: Sample.channelID.description, version: event.id.description, event: written))
        #expect(carillon.offered(event, isVolatile: false, at: Sample.now) == [.send(frame)])
        var plain = open(isCarillon: false)
        #expect(
            plain.offered(event, isVolatile: false, at: Sample.now) == [
                .finish(event.id, Sample.device, .unsupported, code: nil)
            ])
    }

    @Test func `a plain client receives neither caughtUp nor goodbye`() {
        var plain = open(isCarillon: false, caughtUp: false)
        #expect(plain.loaded(.page(.init(envelopes: [], isComplete: true)), at: Sample.now).isEmpty)
        #expect(plain.ended(because: .serverStops).count == 1)
        var carillon = open(caughtUp: false)
        #expect(carillon.loaded(.page(.init(envelopes: [], isComplete: true)), at: Sample.now) == [.send(.caughtUp)])
        var (other, unlinked) = (carillon, carillon)
        let goodbye = carillon.ended(because: .serverStops)
        #expect(goodbye.first == .send(.goodbye(delaySeconds: 1)))
        #expect(closeCode(goodbye) == .restart)
        let unwritten = other.ended(because: .storageUnavailable)
        #expect(unwritten.first == .send(.goodbye(delaySeconds: 1)))
        #expect(closeCode(unwritten) == .tryLater)
        let lost = unlinked.ended(because: .linkLost)
        #expect(lost.first == .send(.goodbye(delaySeconds: 1)))
        #expect(closeCode(lost) == .restart)
    }

    @Test func `an offer of TTL 0 is always answered`() {
        var machine = SessionMachine(settings: settings)
        #expect(
            machine.offered(Sample.envelope(1, ttl: 0), isVolatile: true, at: Sample.now) == [
                .answerOffer(wasAccepted: false)
            ])
        var live = open()
        #expect(
            live.offered(Sample.envelope(1, ttl: 0), isVolatile: true, at: Sample.now).last
                == .answerOffer(wasAccepted: true))
        #expect(live.disconnected() == [.finish(Sample.id(1), Sample.device, .dropped, code: nil)])
    }

    @Test func `an idle connection gets one ping, and then ends`() {
        var machine = open()
        #expect(machine.wasSilent() == [.ping])
        machine.receivedSignOfLife()
        #expect(machine.wasSilent() == [.ping])
        #expect(closeCode(machine.wasSilent()) == .keepAliveTimeout)
    }

    @Test(arguments: [(SessionEnd.replaced, CloseCode.replaced), (.deviceGone, .gone)])
    func `the end has a code of its own`(reason: SessionEnd, code: CloseCode) {
        var machine = open()
        #expect(closeCode(machine.ended(because: reason)) == code)
        #expect(machine.ended(because: reason).isEmpty)
    }

    @Test func `no close code keeps Firefox away for good`() {
        #expect(CloseCode(rawValue: 4774) == nil)
    }

    // MARK: Whether the peer reads

    @Test func `while the peer does not read, nothing is delivered and no request is performed`() {
        var machine = open()
        machine.outputPaused()
        #expect(machine.offered(Sample.envelope(1), isVolatile: false, at: Sample.now).isEmpty)
        #expect(
            machine.offered(Sample.envelope(2, ttl: 0), isVolatile: true, at: Sample.now) == [
                .answerOffer(wasAccepted: false)
            ])
        let register = ClientFrame.Register(channelID: Sample.channelID.description)
        #expect(machine.received(.register(register)).isEmpty)
        #expect(
            machine.outputResumed(at: Sample.now) == [
                .load(.init(after: 0, limit: 4, bytes: 65_536), Sample.device),
                .perform(.register(.device(Sample.device), Sample.channelID, register)),
            ])
    }

    @Test func `a peer that stopped reading before its hello receives nothing either`() {
        var machine = SessionMachine(settings: settings)
        _ = machine.received(.hello(.init()))
        machine.outputPaused()
        let actions = machine.identified(.init(owner: .device(Sample.device), uaid: "u"), at: Sample.now)
        #expect(!actions.contains { if case .load = $0 { true } else { false } })
        #expect(machine.outputResumed(at: Sample.now) == [.load(.init(after: 0, limit: 4, bytes: 65_536), Sample.device)])
    }

    @Test func `a pause before the first channel of a client without registration ends when it reads again`() {
        var machine = SessionMachine(settings: settings)
        let userAgent = UserAgentID(random: Sample.random)
        _ = machine.received(.hello(.init()))
        _ = machine.identified(.init(owner: .provisional(userAgent), uaid: userAgent.text), at: Sample.now)
        machine.outputPaused()
        #expect(machine.outputResumed(at: Sample.now).isEmpty)
        let register = ClientFrame.Register(channelID: Sample.channelID.description)
        _ = machine.received(.register(register))
        let actions = machine.answered(.registered(asWritten: register.channelID, endpoint: "e", device: Sample.device))
        #expect(actions.contains(.arrive(userAgent, Sample.device, .init(after: 0, limit: 4, bytes: 65_536), speaking: 0)))
    }

    @Test(arguments: [false, true])
    func `a channel that is registered while the peer does not read is loaded when it reads again`(readsBeforeAnswer: Bool) {
        var machine = SessionMachine(settings: settings)
        let userAgent = UserAgentID(random: Sample.random)
        _ = machine.received(.hello(.init()))
        _ = machine.identified(.init(owner: .provisional(userAgent), uaid: userAgent.text), at: Sample.now)
        let register = ClientFrame.Register(channelID: Sample.channelID.description)
        _ = machine.received(.register(register))
        machine.outputPaused()
        let actions = machine.answered(.registered(asWritten: register.channelID, endpoint: "e", device: Sample.device))
        let nothing = PageRequest(after: 0, limit: 0, bytes: 65_536)
        #expect(actions.contains(.arrive(userAgent, Sample.device, nothing, speaking: 0)))
        #expect(!actions.contains { if case .load = $0 { true } else { false } })
        let load = SessionMachine.Action.load(.init(after: 0, limit: 4, bytes: 65_536), Sample.device)
        if readsBeforeAnswer {
            #expect(machine.outputResumed(at: Sample.now).isEmpty)
            #expect(machine.loaded(.page(.unread), at: Sample.now) == [load])
        } else {
            #expect(machine.loaded(.page(.unread), at: Sample.now).isEmpty)
            #expect(machine.outputResumed(at: Sample.now) == [load])
        }
    }

    @Test func `a peer that reads too little is ended, by a code of its own`() {
        var machine = open()
        #expect(closeCode(machine.outputStalled()) == .outputStalled)
        #expect(machine.outputStalled().isEmpty)
    }

    // MARK: Bounds, and ends

    @Test func `requests that wait for each other are bounded`() {
        var machine = open()
        var last: [SessionMachine.Action] = []
        var sent = 0
        let register = ClientFrame.register(.init(channelID: Sample.channelID.description))
        while closeCode(last) == nil, sent < 10_000 {
            last = machine.received(register)
            sent += 1
        }
        #expect(closeCode(last) == .policy)
        #expect(sent == 2 * Limits.channelsPerDevice + 2)
    }

    @Test func `one ack has a limited number of updates`() {
        var machine = open()
        let update = ClientFrame.Acknowledgement(version: Sample.id(1).description)
        let many = Array(repeating: update, count: Limits.resultsPerRequest)
        #expect(machine.received(.ack(many)).count == Limits.resultsPerRequest)
        #expect(closeCode(machine.received(.ack(many + [update]))) == .policy)
    }

    @Test(arguments: [ClientFrame.hello(.init()), .register(.init(channelID: "none"))])
    func `a fault of the client finishes its messages of TTL 0`(frame: ClientFrame) {
        var machine = open()
        _ = machine.offered(Sample.envelope(1, ttl: 0), isVolatile: true, at: Sample.now)
        let actions = machine.received(frame)
        #expect(actions.first == .finish(Sample.id(1), Sample.device, .dropped, code: nil))
        #expect(closeCode(actions) == .protocolError)
        #expect(machine.disconnected().isEmpty)
    }

    @Test func `a load that finds no device ends the session as the deletion would have`() {
        var machine = open(caughtUp: false)
        #expect(closeCode(machine.loaded(.deviceGone, at: Sample.now)) == .gone)
    }
}
