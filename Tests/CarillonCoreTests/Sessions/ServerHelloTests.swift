import CarillonCore
import CarillonWire
import Testing

struct ServerHelloTests {
    @Test(arguments: [1, nil]) func `only a Carillon client is informed of the identity of the server`(carillon: Int?) {
        let server = ServerID(Bytes16(high: 1, low: 2))
        var machine = SessionMachine(
            settings: .init(window: .init(envelopes: 4, bytes: 100_000), keepAliveSeconds: 60, server: server))
        _ = machine.received(.hello(.init(carillon: carillon)))
        let actions = machine.identified(.init(owner: .device(Sample.device), uaid: "u"), at: Sample.now)
        let extensions = carillon.map { _ in
            ServerFrame.Hello.Carillon(keepAliveSeconds: 60, server: "00000000000000010000000000000002")
        }
        #expect(actions.contains(.send(.hello(.init(uaid: "u", carillon: extensions)))))
    }

    @Test(arguments: [1, nil]) func `only a Carillon client is informed of the reports that the server has`(carillon: Int?)
        throws
    {
        var machine = SessionMachine(
            settings: .init(window: .init(envelopes: 4, bytes: 100_000), keepAliveSeconds: 60, history: "h"))
        _ = machine.received(.hello(.init(carillon: carillon)))
        let said = ReportedRevisions(device: "d1", services: "s1")
        let actions = machine.identified(.init(owner: .device(Sample.device), uaid: "u"), reported: said, at: Sample.now)
        let extensions = carillon.map { _ in
            ServerFrame.Hello.Carillon(keepAliveSeconds: 60, history: "h", deviceRevision: "d1", servicesRevision: "s1")
        }
        let frame = ServerFrame.hello(.init(uaid: "u", carillon: extensions))
        #expect(actions.contains(.send(frame)))
        #expect(try ServerFrame.parse(frame.text) == frame)
    }
}
