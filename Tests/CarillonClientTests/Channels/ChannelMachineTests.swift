import CarillonWire
import Testing

@testable import CarillonClient

struct ChannelMachineTests {
    static let id = ChannelID(Bytes16(high: 1, low: 2))
    static let otherID = ChannelID(Bytes16(high: 3, low: 4))

    static func endpoint(_ token: String = "first") throws -> ChannelEndpoint {
        try #require(ChannelEndpoint("https://push.example.com/base/push/\(token)"))
    }

    static func machine(_ state: ChannelState) throws -> ChannelMachine {
        let hadToken = state == .open || state == .disconnecting || state == .closed
        return ChannelMachine(
            state: state, channelID: state == .none ? nil : id, endpoint: hadToken ? try endpoint() : nil,
            lastErrorCode: state == .error ? 500 : nil)
    }

    enum Fact: String, CaseIterable, Sendable {
        case registered, registrationFailed, unregistered, closedByServer, failedByServer, deviceLost, connectTimedOut
    }

    struct Row: Sendable, CustomStringConvertible {
        let state: ChannelState
        let fact: Fact
        let next: ChannelState
        let action: ChannelMachine.Action
        var description: String { "\(fact) while \(state)" }

        init(_ state: ChannelState, _ fact: Fact, _ next: ChannelState, _ action: ChannelMachine.Action) {
            (self.state, self.fact, self.next, self.action) = (state, fact, next, action)
        }
    }

    /// Every fact of the server in the states where it means something.
    static let effective: [Row] = [
        Row(.connecting, .registered, .open, .notifyOpened(token: "second", host: "push.example.com")),
        Row(.connecting, .registrationFailed, .error, .notifyError(code: 202)),
        Row(.connecting, .closedByServer, .error, .notifyError(code: 500)),
        Row(.connecting, .failedByServer, .error, .notifyError(code: 510)),
        Row(.connecting, .deviceLost, .error, .notifyError(code: 201)),
        Row(.connecting, .connectTimedOut, .error, .notifyError(code: 0)),
        Row(.open, .closedByServer, .closed, .notifyClosed(token: "first")),
        Row(.open, .failedByServer, .error, .notifyError(code: 510)),
        Row(.open, .deviceLost, .error, .notifyError(code: 201)),
        Row(.disconnecting, .unregistered, .closed, .notifyClosed(token: "first")),
        Row(.disconnecting, .closedByServer, .closed, .notifyClosed(token: "first")),
        Row(.disconnecting, .failedByServer, .closed, .notifyClosed(token: "first")),
        Row(.disconnecting, .deviceLost, .closed, .notifyClosed(token: "first")),
    ]

    static let ineffective: [Row] = ChannelState.allCases.flatMap { state in
        Fact.allCases.compactMap { fact in
            effective.contains { $0.state == state && $0.fact == fact } ? nil : Row(state, fact, state, .none)
        }
    }

    static func take(_ fact: Fact, _ machine: inout ChannelMachine) throws -> ChannelMachine.Action {
        switch fact {
        case .registered: machine.registered(at: try endpoint("second"))
        case .registrationFailed: machine.registrationFailed(code: 202)
        case .unregistered: machine.unregistered()
        case .closedByServer: machine.closedByServer()
        case .failedByServer: machine.failedByServer(code: 510)
        case .deviceLost: machine.deviceLost()
        case .connectTimedOut: machine.connectTimedOut()
        }
    }

    @Test(arguments: effective) func `a fact of the server leads to the state and the event of the table`(_ row: Row)
        throws
    {
        var machine = try Self.machine(row.state)
        #expect(try Self.take(row.fact, &machine) == row.action)
        #expect(machine.state == row.next)
    }

    @Test(arguments: ineffective) func `any other fact of the server changes nothing`(_ row: Row) throws {
        var machine = try Self.machine(row.state)
        let before = machine
        #expect(try Self.take(row.fact, &machine) == .none)
        #expect(machine == before)
    }

    @Test(arguments: [ChannelState.none, .closed, .error])
    func `connect begins anew, without the former token and code`(_ state: ChannelState) throws {
        var machine = try Self.machine(state)
        try machine.connectRequested(as: Self.otherID)
        #expect(
            machine == ChannelMachine(state: .connecting, channelID: Self.otherID, endpoint: nil, lastErrorCode: nil))
    }

    @Test(arguments: [
        (ChannelState.connecting, PushError.Code.alreadyConnecting), (.open, .alreadyOpen),
        (.disconnecting, .stillDisconnecting),
    ])
    func `connect is refused where it makes no sense, and changes nothing`(
        _ state: ChannelState, _ code: PushError.Code
    ) throws {
        var machine = try Self.machine(state)
        let before = machine
        let error = #expect(throws: PushError.self) { try machine.connectRequested(as: Self.otherID) }
        #expect(error?.code == code)
        #expect(machine == before)
    }

    @Test func `a disconnect of an open channel waits for the server`() throws {
        var machine = try Self.machine(.open)
        #expect(machine.disconnectRequested() == .none)
        #expect(machine.state == .disconnecting)
        #expect(machine.receivesMessages)
    }

    @Test func `a disconnect abandons a channel that is connecting`() throws {
        var machine = try Self.machine(.connecting)
        #expect(machine.disconnectRequested() == .notifyClosed(token: ""))
        #expect(machine.state == .closed)
    }

    @Test(arguments: ChannelState.allCases.filter { $0 != .open && $0 != .connecting })
    func `a disconnect is legal in any other state, and changes nothing`(_ state: ChannelState) throws {
        var machine = try Self.machine(state)
        let before = machine
        #expect(machine.disconnectRequested() == .none)
        #expect(machine == before)
    }

    @Test(arguments: ChannelState.allCases) func `only an open channel moves, with its token, and is reported once`(
        _ state: ChannelState
    ) throws {
        var machine = try Self.machine(state)
        let endpoint = try #require(ChannelEndpoint("https://new.example.com/push/first"))
        #expect(machine.moved(to: endpoint) == (state == .open ? .notifyMoved : .none))
        #expect(machine.moved(to: endpoint) == .none)
        #expect((machine.endpoint == endpoint) == (state == .open))
        #expect(machine.isTokenDue == (state == .open))
        #expect(machine.moved(to: try Self.endpoint("second")) == .none)
    }

    @Test func `an open channel keeps its first endpoint when it is registered again`() throws {
        var machine = try Self.machine(.open)
        _ = machine.registered(at: try Self.endpoint("second"))
        #expect(machine.endpoint?.token == "first")
    }

    @Test(arguments: ["", "push/token", "ftp://host/push/t", "https://host", "https://host/", "https:///push/t"])
    func `a text without host and token is no endpoint`(_ text: String) {
        #expect(ChannelEndpoint(text) == nil)
    }
}
