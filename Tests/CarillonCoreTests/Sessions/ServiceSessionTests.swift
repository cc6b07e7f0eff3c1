import CarillonCore
import CarillonWire
import Testing

/// The effects of services on a session: concurrent requests, and changes of providers.
struct ServiceSessionTests {
    private func open(_ version: Int = 2, also: [String] = ["services"]) -> SessionMachine {
        var machine = SessionMachine(settings: .init(window: .init(envelopes: 4, bytes: 100_000), keepAliveSeconds: 60))
        _ = machine.received(.hello(.init(carillon: version, also: also)))
        _ = machine.identified(
            .init(owner: .device(Sample.device), uaid: "u"), .init(envelopes: [], isComplete: true), at: Sample.now)
        return machine
    }

    private func request(_ id: Int, _ path: String = "/v1/services/requests") -> ClientFrame.Request {
        .init(id: id, method: "POST", path: path)
    }

    private func performed(_ actions: [SessionMachine.Action]) -> [Int] {
        actions.compactMap { if case .perform(.ask(_, let request)) = $0 { request.id } else { nil } }
    }

    private func answer(_ id: Int) -> SessionMachine.Answer { .asked(.init(id: id, status: 200, body: [])) }

    @Test func `a client that asked for services can use them and is informed of it, and others of an early version cannot`()
    {
        var machine = SessionMachine(settings: .init(window: .init(envelopes: 4, bytes: 100_000), keepAliveSeconds: 60))
        _ = machine.received(.hello(.init(carillon: 2, also: ["services"])))
        let actions = machine.identified(.init(owner: .device(Sample.device), uaid: "u"), at: Sample.now)
        let hello = ServerFrame.Hello(
            uaid: "u", carillon: .init(version: 2, keepAliveSeconds: 60, server: nil, also: ["services"]))
        #expect(actions.first == .send(.hello(hello)))
        #expect(performed(machine.received(.request(request(1)))) == [1])
        var other = open(also: [])
        guard case .close(.protocolError, _)? = other.received(.request(request(1))).last else {
            Issue.record("it may ask")
            return
        }
    }

    @Test func `requests of services are performed side by side, sixteen at the most, and others alone`() {
        var machine = open(3)
        #expect((1...20).flatMap { performed(machine.received(.request(request($0)))) } == Array(1...16))
        #expect(performed(machine.received(.request(request(21, "/v1/device/subscriptions")))).isEmpty)
        #expect(performed(machine.received(.request(request(22)))).isEmpty)
        #expect(performed(machine.answered(answer(5))) == [17])
        for id in [1, 2, 3] { #expect(performed(machine.answered(answer(id))) == [17 + id]) }
        // A request that changes the effect of later ones waits for all before it, and all later ones wait for it.
        for id in [4] + Array(6...19) { #expect(performed(machine.answered(answer(id))).isEmpty) }
        #expect(performed(machine.answered(answer(20))) == [21])
        #expect(performed(machine.received(.request(request(23)))).isEmpty)
        #expect(performed(machine.answered(answer(21))) == [22, 23])
    }

    @Test func `a change of providers is sent to clients with services, once for all changes while the peer does not read`()
    {
        var machine = open()
        #expect(machine.providersChanged() == [.send(.providersChanged)])
        #expect(machine.providersChanged() == [.send(.providersChanged)])
        machine.outputPaused()
        #expect(machine.providersChanged().isEmpty)
        #expect(machine.providersChanged().isEmpty)
        #expect(machine.outputResumed(at: Sample.now).filter { $0 == .send(.providersChanged) }.count == 1)
        machine.outputPaused()
        #expect(!machine.outputResumed(at: Sample.now).contains(.send(.providersChanged)))
        var newer = open(6, also: [])
        #expect(newer.providersChanged() == [.send(.providersChanged)])
        var other = open(5, also: [])
        #expect(other.providersChanged().isEmpty)
    }
}
