import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Testing

@testable import CarillonClient

/// The reason why there is no connection, in sentences for people.
@Suite(.timeLimit(.minutes(5)))
struct ConnectionReasonTests {
    private let base = TransportConformanceTests()
    private typealias Kind = TransportConformanceTests.Kind

    /// Texts that no sentence contains: names of types, of files and of error numbers.
    private func isPlain(_ text: String) -> Bool {
        !["NIO", "SSL:", "BoringSSL", "errno", "Error(", ".swift", ".cc", "_"].contains { text.contains($0) }
    }

    private func reason(_ transport: any ClientTransport, at address: String) async throws -> ConnectionReason {
        let reason: ConnectionReason
        do {
            if let socket = WebAddress(webSocket: address) {
                try await transport.withConnection(to: socket) { _ in Issue.record("there is a connection") }
            } else {
                _ = try await transport.send(try base.request(address))
            }
            Issue.record("there is an answer")
            reason = ConnectionReason("none")
        } catch {
            reason = ConnectionReason(error)
        }
        #expect(isPlain(reason.summary) && isPlain(reason.advice ?? ""), "\(reason)")
        return reason
    }

    @Test(arguments: ["ws://127.0.0.1:1/", "http://127.0.0.1:1/", "ws://localhost:1/"])
    func `a port where nobody listens refuses`(_ address: String) async throws {
        let found = try await reason(Kind.posix.transport(), at: address)
        #expect(found.summary == "connection refused" && found.advice != nil)
    }

    @Test func `a name that does not exist is not found`() async throws {
        let found = try await reason(Kind.posix.transport(timeout: .seconds(30)), at: "wss://nothing.invalid/")
        #expect(found.summary == "name not found")
    }

    @Test(arguments: ["wss", "https"])
    func `untrusted certificates and certificates for another name are distinguished`(_ scheme: String) async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forLocalhost.server)
        let untrusted = try await reason(Kind.posix.transport(), at: "\(scheme)://localhost:\(server.port)/")
        #expect(untrusted.summary == "the certificate is not trusted, or not valid now")
        #expect(untrusted.advice?.contains("--ca FILE") == true)
        let elsewhere = try await ScriptedServer.start(tls: TestCertificate.forElsewhere.server)
        let other = try await reason(
            Kind.posix.transport(trusting: .forElsewhere), at: "\(scheme)://localhost:\(elsewhere.port)/")
        #expect(other.summary == "the certificate is for another name")
    }

    @Test func `a port without TLS, and one without HTTP, are named as such`() async throws {
        try await base.withListener(saying: "HTTP/1.1 400 Bad Request\r\n\r\n") { port in
            let plain = try await reason(Kind.posix.transport(), at: "wss://localhost:\(port)/")
            #expect(plain.summary == "the server does not speak TLS on this port")
        }
        try await base.withListener(saying: "SSH-2.0-OpenSSH_9.2\r\n", closes: true) { port in
            let shell = try await reason(Kind.posix.transport(), at: "http://127.0.0.1:\(port)/")
            #expect(shell.summary == "the answer is not HTTP")
        }
    }

    @Test func `a server that answers too late, closes, or sends too much is reported as such`() async throws {
        try await base.withListener { port in
            let transport = try Kind.posix.transport(timeout: .milliseconds(100))
            let found = try await reason(transport, at: "ws://127.0.0.1:\(port)/")
            #expect(found == .noAnswer)
        }
        try await base.withListener(saying: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", closes: true) { port in
            let found = try await reason(Kind.posix.transport(), at: "http://127.0.0.1:\(port)/")
            #expect(found == .closed)
        }
        #expect(ConnectionReason(NIOHTTPObjectAggregatorError.frameTooLong) == .answerTooLarge)
    }

    @Test func `the status of a refused handshake is reported`() async throws {
        try await base.withListener(saying: "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n") { port in
            let found = try await reason(Kind.posix.transport(), at: "ws://127.0.0.1:\(port)/")
            #expect(found.summary == "the server answered the WebSocket handshake with status 502")
        }
    }

    @Test(arguments: [ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ECONNRESET, ENOENT, EACCES, EMFILE, EADDRNOTAVAIL, EINVAL])
    func `an error of the system has a sentence`(_ code: CInt) {
        let reason = ConnectionReason(IOError(errnoCode: code, reason: "connect(descriptor:addr:size:)"))
        #expect(isPlain(reason.summary), "\(reason)")
    }

    @Test func `an unknown error has a sentence without its text`() {
        struct Strange: Error {}
        #expect(ConnectionReason(Strange()).summary == "connection failed")
        #expect(ConnectionReason.known(Strange()) == nil)
        #expect(ConnectionReason(NIOSSLError.uncleanShutdown) == .closed)
        #expect(ConnectionReason(HTTPParserError.invalidEOFState) == .closed)
    }

    @Test func `a socket elsewhere than the server names the public URL as the cause`() throws {
        let server = try #require(WebAddress(http: "http://127.0.0.1:8080"))
        let fault = TransportFault(.unreachable, IOError(errnoCode: ECONNREFUSED, reason: "connect"))
        let elsewhere = try #require(WebAddress(webSocket: "wss://push.example.com/"))
        let error = ConnectionFailure(fault, at: elsewhere, sentBy: server).error()
        #expect(error.message.hasPrefix("Cannot connect to wss://push.example.com/: connection refused. "))
        #expect(error.message.contains("http://127.0.0.1:8080 gave this address; its public-url must be"))
        let same = try #require(WebAddress(webSocket: "ws://127.0.0.1:8080/"))
        let plain = ConnectionFailure(fault, at: same, sentBy: server)
        #expect(plain.error().message.contains("public-url") == false)
        #expect(plain.description == "cannot connect to ws://127.0.0.1:8080/: connection refused")
        #expect(plain.error(.serverUnreachable, "to register the device").message.contains("8080/ to register the device: "))
    }

    @Test(arguments: [
        ("https://push.example.com/base", "https://push.example.com", "push.example.com:443"),
        ("HTTP://127.0.0.1:8080", "http://127.0.0.1:8080", "127.0.0.1:8080"), ("http://[::1]:1/", "http://[::1]:1", "::1:1"),
    ])
    func `an address has an origin and a place`(_ text: String, _ origin: String, _ place: String) throws {
        let address = try #require(WebAddress(http: text))
        #expect(address.origin == origin && address.place == place)
    }
}
