import CarillonCore
import Foundation
import Logging
import NIOCore
import NIOPosix
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Listeners that end because `accept` fails.
@Suite(.timeLimit(.minutes(5)))
struct ListenerFaultTests {
    /// Makes `accept` fail on the socket of this process that listens on the port.
    private static func breakListener(on port: Int) -> Bool {
        for descriptor in Int32(3)..<4096 {
            var isListening: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0, isListening != 0 else {
                continue
            }
            guard LocalPort.of(descriptor) == port else { continue }
            // EINVAL from now on.
            return shutdown(descriptor, Int32(SHUT_RDWR)) == 0
        }
        return false
    }

    @Test func `a listener that closed is opened again, and its connections go on`() async throws {
        try await ServedConnections.run {
            $0.listenerRetry.delay = .seconds(15)
        } _: { server in
            let kept = try RawPeer(port: server.port)
            @Sendable func ready() async throws -> String {
                try kept.send("GET /health/ready HTTP/1.1\r\nHost: h\r\n\r\n")
                return try await kept.read(until: "}")
            }
            #expect(try await ready().contains(" 200 "))
            #expect(Self.breakListener(on: server.port))
            try await eventually { try await ready().contains("listener_closed") }
            #expect(throws: RawPeer.Ended.self) { _ = try RawPeer(port: server.port) }
            try await eventually { try await ready().contains(" 200 ") }
            #expect(try await server.request("GET /health/ready").status == 200)
        }
    }

    @Test func `the listener of metrics is opened again, though a connection of it is open`() async throws {
        let port = try FreePort.next()
        try await ServedConnections.run(metrics: MetricsRegistry()) {
            $0.metrics = ("127.0.0.1", port)
            $0.listenerRetry.delay = .seconds(15)
        } _: { server in
            let metrics = ServedConnections(homes: server.homes, port: port)
            let kept = try RawPeer(port: port)
            try kept.send("GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try await kept.read(until: "}")
            #expect(Self.breakListener(on: port))
            try await eventually { try await server.request("GET /health/ready").body.contains("listener_closed") }
            try await eventually { try await server.request("GET /health/ready").status == 200 }
            #expect(try await metrics.request("GET /metrics").status == 200)
        }
    }

    @Test func `a listener that cannot be opened again ends the server`() async throws {
        var settings = ServerSettings(port: 0, dataDirectory: try TemporaryDirectory.make() + "/data")
        settings.listenerRetry = .init(delay: .seconds(20), patience: .seconds(21))
        let (running, began) = AsyncStream.makeStream(of: Int.self)
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let server = CarillonServer(settings: settings, stores: stores.factory, logger: logger) {
            began.yield($0.port)
        }
        // Ends when the listener is lost, or with the test.
        let run = Task {
            defer { began.finish() }
            try await server.run()
        }
        defer { run.cancel() }
        for await port in running {
            #expect(Self.breakListener(on: port))
            let other = try await Self.listen(on: port)
            let lost = await #expect(throws: ListenerLost.self) { try await run.value }
            #expect(lost?.description.contains("127.0.0.1:") == true, "\(String(describing: lost))")
            try await other.close()
            break
        }
        // Everything was closed in order.
        let isClosed = try stores.isClosed(at: settings.dataDirectory)
        #expect(isClosed)
    }

    /// Binds the port as soon as the server has lost it.
    private static func listen(on port: Int) async throws -> any NIOCore.Channel {
        let deadline = ContinuousClock.now + .seconds(18)
        while true {
            do {
                return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                    .bind(host: "127.0.0.1", port: port).get()
            } catch {
                guard ContinuousClock.now < deadline else { throw error }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
    }
}
