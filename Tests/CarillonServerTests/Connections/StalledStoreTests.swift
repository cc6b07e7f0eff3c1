import CarillonWire
import Dispatch
import TestStores
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// Requests and sessions while the commits of the store do not return.
@Suite(.timeLimit(.minutes(5)))
struct StalledStoreTests {
    /// Serves with a store whose commits do not return while it is stalled.
    private func run(
        _ body:
            @escaping @Sendable (ServedConnections, _ stall: @Sendable () -> Void, _ goOn: @Sendable () -> Void) async throws
            -> Void
    ) async throws {
        let isMoving = DispatchSemaphore(value: 0)
        try await ServedConnections.run {
            $0.requests.answerSeconds = 10
        } _: { server in
            let store = try #require(server.store)
            let goOn: @Sendable () -> Void = {
                stores.onCommit(of: store, nil)
                for _ in 0..<100 { isMoving.signal() }
            }
            defer { goOn() }
            try await body(server, { stores.onCommit(of: store) { isMoving.wait() } }, goOn)
        }
    }

    @Test func `a request is refused in time, and may be done`() async throws {
        try await run { server, stall, goOn in
            let key = try await server.domain.keys.createKey(role: .admin, app: nil, name: nil).secret.text
            let fields = ["Authorization: Bearer \(key)"]
            stall()
            let late = try await server.request("POST /v1/apps", fields, #"{"id":"com.example.late"}"#)
            #expect(late.status == 503 && late.body.contains("not_finished"), "\(late.body)")
            #expect(late["retry-after"] != nil && late["connection"] == "close")
            // A request without a write is answered meanwhile.
            #expect(try await server.request("GET /v1/apps", fields).status == 200)
            goOn()
            while try await !server.request("GET /v1/apps", fields).body.contains("com.example.late") {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    @Test func `a publisher is refused in time`() async throws {
        try await run { server, stall, _ in
            let channel = try await server.openChannel()
            stall()
            let late = try await server.request(
                "POST /push/\(channel.token)", ["TTL: 60", "Content-Encoding: identity"], "x")
            #expect(late.status == 503 && late.body.contains("not_finished"), "\(late.body)")
        }
    }

    @Test func `a session is notified in time, and stays open`() async throws {
        try await run { server, stall, _ in
            let device = try await server.openChannel()
            let peer = try RawPeer(port: server.port)
            try await peer.hello(credential: device.credential, version: 3)
            stall()
            try peer.sendFrame(
                #"{"messageType":"request","id":7,"method":"POST","path":"/v1/inbox","body":{"protocol":1,"kinds":["popup"]}}"#
            )
            let answer = try await peer.read(until: #""status":"#)
            #expect(answer.contains("not_finished") && answer.contains(#""id":7"#), "\(answer)")
            try peer.sendFrame("{}")
            _ = try await peer.read(until: "{}")
        }
    }
}
