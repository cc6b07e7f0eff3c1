import CarillonWire
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The stored ids of servers from an earlier run.
@Suite(.timeLimit(.minutes(5)))
struct NamedServersTests {
    private static let base = "http://host"
    private static let day: Int64 = 86_400_000
    private let directory = TemporaryDirectory()

    /// Answers each DELETE with 204 without a name, and each GET with the description of a server.
    private struct Server: ClientTransport {
        var id: String
        var isNamed = false

        func withConnection(
            to address: WebAddress, _ body: (WebSocketConnection) async -> Void
        ) async throws(TransportFault) { throw TransportFault(.unreachable, nil) }

        func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
            guard request.method == .get else { return WebAnswer(status: 204, body: Data()) }
            let body = #"{"server":"\#(id)","socket":"ws://host/","endpoints":"http://host/push/"}"#
            return WebAnswer(
                status: 200, body: Data(body.utf8), contentType: "application/json", server: isNamed ? id : nil)
        }
    }

    private func open() throws -> (store: ClientStore, named: [NamedServer]) {
        let store = try ClientStore(directory: directory.path, patience: 60)
        return (store, try store.load(server: Self.base, app: "com.example.app").namedServers)
    }

    /// Whether a 204 without a name is taken in a run that begins at a time, after a server with the id "s" named itself at 0.
    private func isTaken(_ server: Server, at time: Int64) async throws -> Bool {
        let (store, named) = try open()
        let memory = NamedServers(named, store: store, now: { time })
        let request = WebRequest(
            method: .delete, address: try #require(WebAddress(http: Self.base + "/v1/device")), answerLimit: 1000)
        let recognition = ServerRecognition(memory: memory)
        let answer = await ServerAPI(Self.base, over: server, recognition: recognition).send(request, expecting: .noContent)
        try await store.inStep { _ in }
        if case .success = answer { return true }
        return false
    }

    private func learn(_ id: String = "s") async throws {
        let (store, named) = try open()
        NamedServers(named, store: store, now: { 0 }).named(Self.base, id)
        try await store.inStep { _ in }
    }

    @Test func `a 204 without the name is not taken after a restart, though the name is missing everywhere`() async throws {
        #expect(try await isTaken(Server(id: "s"), at: 0), "nothing is known yet")
        try await learn()
        for _ in 0..<2 { #expect(try await !isTaken(Server(id: "s"), at: Self.day)) }
        #expect(try open().named == [NamedServer(base: Self.base, id: "s", seenAt: 0)])
    }

    @Test func `another server without a name is taken, and remembered by nothing`() async throws {
        try await learn()
        #expect(try await isTaken(Server(id: "other"), at: Self.day))
        #expect(try open().named.isEmpty)
    }

    @Test func `another server that names itself is remembered instead`() async throws {
        try await learn()
        #expect(try await !isTaken(Server(id: "other", isNamed: true), at: Self.day))
        #expect(try open().named == [NamedServer(base: Self.base, id: "other", seenAt: Self.day)])
    }

    @Test func `the name is required for seven days after the last response that had it`() async throws {
        try await learn()
        #expect(try await !isTaken(Server(id: "s"), at: 7 * Self.day))
        #expect(try await isTaken(Server(id: "s"), at: 7 * Self.day + 1))
    }

    /// Whether a 204 without a name is taken at a time, in a run in which a server with the id "s" named itself at 0.
    private func isTakenInTheSameRun(_ server: Server, at time: Int64, isStored: Bool = true) async throws -> Bool {
        let clock = Mutex<Int64>(0)
        let (store, named) = try open()
        if !isStored { try await store.inStep { try $0.execute(sql: "ALTER TABLE named_server RENAME TO away") } }
        let recognition = ServerRecognition(
            memory: NamedServers(named, store: store, now: { clock.withLock { $0 } }))
        let address = try #require(WebAddress(http: Self.base + "/v1/server"))
        let request = WebRequest(method: .get, address: address, answerLimit: 1000)
        let described = await ServerAPI(Self.base, over: Server(id: "s", isNamed: true), recognition: recognition)
            .send(request, expecting: .json(200, as: ServerBody.self))
        guard case .success = described else { return true }
        try await store.inStep { _ in }
        clock.withLock { $0 = time }
        let deletion = WebRequest(
            method: .delete, address: try #require(WebAddress(http: Self.base + "/v1/device")), answerLimit: 1000)
        let answer = await ServerAPI(Self.base, over: server, recognition: recognition).send(deletion, expecting: .noContent)
        if case .success = answer { return true }
        return false
    }

    @Test func `a running process accepts a 204 without the name of another server, or after seven days`() async throws {
        #expect(try await !isTakenInTheSameRun(Server(id: "s"), at: 7 * Self.day))
        #expect(try await !isTakenInTheSameRun(Server(id: "other", isNamed: true), at: 0))
        #expect(try await isTakenInTheSameRun(Server(id: "other"), at: 0))
        #expect(try await isTakenInTheSameRun(Server(id: "s"), at: 7 * Self.day + 1))
    }

    @Test func `a name that could not be stored is required in the same run`() async throws {
        #expect(try await !isTakenInTheSameRun(Server(id: "s"), at: 8 * Self.day, isStored: false))
    }

    @Test func `a name is stored once a day`() async throws {
        let time = Mutex<Int64>(0)
        let (store, named) = try open()
        let memory = NamedServers(named, store: store, now: { time.withLock { $0 } })
        for (now, stored) in [(0, 0), (Self.day - 1, 0), (Self.day, Self.day)] as [(Int64, Int64)] {
            time.withLock { $0 = now }
            memory.named(Self.base, "s")
            let seen = try await store.inStep { try Int64.first($0, "SELECT seen_at FROM named_server") }
            #expect(seen == stored)
        }
        memory.named(Self.base, String(repeating: "s", count: NamedServers.longestIDBytes + 1))
        let id = try await store.inStep { try String.first($0, "SELECT id FROM named_server") }
        #expect(id == "s")
    }

    @Test func `a name is stored again after the clock was set back by a day`() async throws {
        let time = Mutex<Int64>(30 * Self.day)
        let (store, named) = try open()
        let memory = NamedServers(named, store: store, now: { time.withLock { $0 } })
        memory.named(Self.base, "s")
        time.withLock { $0 = 29 * Self.day }
        memory.named(Self.base, "s")
        let seen = try await store.inStep { try Int64.first($0, "SELECT seen_at FROM named_server") }
        #expect(seen == 29 * Self.day)
    }

    @Test func `the servers that were seen last are stored, and no more`() async throws {
        let time = Mutex<Int64>(0)
        do {
            let (store, named) = try open()
            let memory = NamedServers(named, store: store, now: { time.withLock { $0 } })
            for number in 0...NamedServers.mostServers {
                time.withLock { $0 = Int64(number) }
                memory.named("http://host-\(number)", "s")
            }
            try await store.inStep { _ in }
        }
        let bases = try open().named.map(\.base).sorted()
        #expect(bases == (1...NamedServers.mostServers).map { "http://host-\($0)" })
    }

    @Test func `a name that could not be stored is stored with the next response`() async throws {
        let (store, named) = try open()
        let memory = NamedServers(named, store: store, now: { 0 })
        try await store.inStep { try $0.execute(sql: "ALTER TABLE named_server RENAME TO away") }
        memory.named(Self.base, "s")
        try await store.inStep { try $0.execute(sql: "ALTER TABLE away RENAME TO named_server") }
        memory.named(Self.base, "s")
        let id = try await store.inStep { try String.first($0, "SELECT id FROM named_server") }
        #expect(id == "s")
    }
}
