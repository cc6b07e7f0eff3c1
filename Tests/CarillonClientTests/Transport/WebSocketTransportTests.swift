import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(1)))
struct WebSocketTransportTests {
    func transport(
        trusting certificate: TestCertificate? = nil, timeout: Duration = .seconds(10)
    ) throws -> WebSocketTransport {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let certificate {
            configuration.trustRoots = .certificates(
                try NIOSSLCertificate.fromPEMBytes(Array(certificate.certificate.utf8)))
        }
        return WebSocketTransport(tls: try NIOSSLContext(configuration: configuration), timeout: timeout)
    }

    func address(_ text: String) throws -> WebAddress { try #require(WebAddress(webSocket: text)) }

    /// A listener that accepts connections and says nothing.
    func withSilentListener(_ body: (Int) async throws -> Void) async throws {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        try await body(try #require(listener.localAddress?.port))
        try await listener.close()
    }

    func fault(_ transport: WebSocketTransport, _ address: WebAddress) async -> TransportFault.Kind? {
        do {
            try await transport.withConnection(to: address) { _ in Issue.record("there is a connection") }
            return nil
        } catch {
            return error.kind
        }
    }

    @Test func `a server that the roots vouch for is connected to`() async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forLocalhost.server)
        try await transport(trusting: .forLocalhost).withConnection(to: address("wss://localhost:\(server.port)/")) {
            $0.close(code: 1000)
        }
        #expect(try await server.nextSocket().closeCode() == 1000)
    }

    @Test(arguments: [nil, TestCertificate.forElsewhere])
    func `a server that the roots do not vouch for is refused`(_ roots: TestCertificate?) async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forLocalhost.server)
        #expect(
            try await fault(transport(trusting: roots), address("wss://localhost:\(server.port)/"))
                == .reachedServer)
    }

    @Test func `a certificate for another name is refused`() async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forElsewhere.server)
        #expect(
            try await fault(transport(trusting: .forElsewhere), address("wss://localhost:\(server.port)/"))
                == .reachedServer)
    }

    @Test func `a certificate for a name is refused for an address`() async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forLocalhost.server)
        #expect(
            try await fault(transport(trusting: .forLocalhost), address("wss://127.0.0.1:\(server.port)/"))
                == .reachedServer)
    }

    @Test func `nobody there is a fault of the network`() async throws {
        #expect(try await fault(transport(), address("ws://127.0.0.1:1/")) == .unreachable)
    }

    @Test func `a server that does not upgrade is reached and refused`() async throws {
        let server = try await ScriptedServer.start(upgrades: false)
        #expect(try await fault(transport(), address("ws://localhost:\(server.port)/")) == .refusedUpgrade)
    }

    @Test func `an attempt that gets no answer ends in time`() async throws {
        try await withSilentListener { port in
            let transport = try transport(timeout: .milliseconds(100))
            let kind = await fault(transport, try address("ws://127.0.0.1:\(port)/"))
            #expect(kind == .timeOut)
        }
    }

    @Test func `an attempt that gets no answer can be cancelled`() async throws {
        try await withSilentListener { port in
            let transport = try transport(timeout: .seconds(1000))
            let address = try address("ws://127.0.0.1:\(port)/")
            let attempt = Task { await fault(transport, address) }
            attempt.cancel()
            #expect(await attempt.value != nil)
        }
    }

    @Test(arguments: [
        ("ws://host", "host", 80, "/", "host"), ("wss://host/path?a=b", "host", 443, "/path?a=b", "host"),
        ("wss://host:8443/", "host", 8443, "/", "host:8443"), ("ws://[::1]:8080/x", "::1", 8080, "/x", "[::1]:8080"),
    ])
    func `an address is taken apart`(
        _ text: String, _ host: String, _ port: Int, _ target: String, _ authority: String
    ) throws {
        let address = try address(text)
        #expect(address.host == host)
        #expect(address.port == port)
        #expect(address.target == target)
        #expect(address.authority == authority)
    }

    @Test(arguments: ["", "host", "http://host", "ws://", "ws://user@host/", "ws://host/#part", "ws://host:0/"])
    func `a text that is no socket address is refused`(_ text: String) {
        #expect(WebAddress(webSocket: text) == nil)
    }
}
