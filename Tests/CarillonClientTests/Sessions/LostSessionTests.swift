import CarillonWire
import Testing

@testable import CarillonClient

/// A server that was restored from a backup, as a session notices it when it connects again.
struct LostSessionTests {
    private typealias Base = ClientSessionTests

    private func hello(_ history: String?, _ device: String? = nil, services: String? = nil) -> ServerFrame {
        .hello(
            .init(
                uaid: "d",
                carillon: .init(keepAliveSeconds: 30, history: history, deviceRevision: device, servicesRevision: services)))
    }

    private func reports(_ actions: [SessionAction]) -> [PushDeviceMachine.Report] {
        actions.compactMap { if case .reportDevice(let report, _) = $0 { report } else { nil } }
    }

    private func connect(_ session: inout ClientSession, _ frame: ServerFrame) -> [SessionAction] {
        _ = session.socketClosed(code: 1012, at: Base.start, random: 0)
        _ = session.timerFired(at: Base.start + .seconds(3600))
        if session.move == .locateServer {
            _ = session.serverNotLocated(isReached: true, at: Base.start, random: 0)
        }
        _ = session.socketOpened(at: Base.start)
        return Base.receive(frame, &session)
    }

    /// A session whose token the server accepted.
    private func registered(_ history: String?) throws -> (session: ClientSession, name: String?) {
        var session = ClientSession(.init(), restoring: Base.stored())
        _ = session.started(at: Base.start)
        _ = session.socketOpened(at: Base.start)
        _ = Base.receive(hello(history), &session)
        let actions = session.pushTokenSet("aa", at: Base.start)
        let report = try #require(reports(actions).first)
        _ = session.reportAccepted(report, of: Base.identity, .registered, since: 1, at: Base.start)
        return (session, report.revision)
    }

    @Test func `a report of the device has a name if the server remembers it, and otherwise none`() throws {
        let (named, unnamed) = (try registered("h").name, try registered(nil).name)
        #expect(named?.isEmpty == false && unnamed == nil)
    }

    @Test func `a report that the server has is not sent again`() throws {
        var (session, name) = try registered("h")
        let actions = connect(&session, hello("h", name))
        #expect(reports(actions).isEmpty)
        #expect(actions.contains(.notifySubscriptions(.connected(version: 1, isRestored: false))))
        #expect(actions.contains(.notifyServicesRevision(nil, isRestored: false)))
    }

    @Test func `a server that lost a report gets it again, and is asked for the rest`() throws {
        for (history, isNamed) in [("h", false), ("other", true)] {
            var (session, name) = try registered("h")
            let actions = connect(&session, hello(history, isNamed ? name : "before", services: "s"))
            #expect(reports(actions).map(\.token) == ["aa"], "\(history)")
            #expect(actions.contains(.notifySubscriptions(.connected(version: 1, isRestored: true))))
            #expect(actions.contains(.notifyServicesRevision("s", isRestored: true)))
            let report = try #require(reports(actions).first)
            _ = session.reportAccepted(report, of: Base.identity, .registered, since: 1, at: Base.start)
            let next = connect(&session, hello(history, name))
            #expect(reports(next).isEmpty)
            #expect(next.contains(.notifySubscriptions(.connected(version: 1, isRestored: false))))
        }
    }

    @Test func `a server that does not mention reports gets each one once`() throws {
        var (session, _) = try registered(nil)
        let actions = connect(&session, hello(nil))
        #expect(reports(actions).isEmpty)
        #expect(actions.contains(.notifySubscriptions(.connected(version: 1))))
    }
}
