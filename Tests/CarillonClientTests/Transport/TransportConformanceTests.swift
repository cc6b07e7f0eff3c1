import CarillonWire
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Testing

@testable import CarillonClient

/// The requirements for every transport of the client.
@Suite(.timeLimit(.minutes(5)))
struct TransportConformanceTests {
    /// A transport that can be built here.
    enum Kind: CaseIterable {
        case posix
        #if canImport(Network)
            case network
        #endif

        var sockets: Sockets {
            switch self {
            case .posix: .posix
            #if canImport(Network)
                case .network: .network
            #endif
            }
        }

        func transport(
            trusting certificate: TestCertificate? = nil, timeout: Duration = .seconds(60)
        ) throws -> any ClientTransport {
            var configuration = TLSConfiguration.makeClientConfiguration()
            if let certificate {
                configuration.trustRoots = .certificates(
                    try NIOSSLCertificate.fromPEMBytes(Array(certificate.certificate.utf8)))
            }
            return NIOTransport(tls: try NIOSSLContext(configuration: configuration), timeout: timeout, sockets: sockets)
        }
    }

    func socket(_ text: String) throws -> WebAddress { try #require(WebAddress(webSocket: text)) }

    func request(_ text: String, limit: Int = 1000) throws -> WebRequest {
        WebRequest(method: .get, address: try #require(WebAddress(http: text)), answerLimit: limit)
    }

    /// A listener that accepts connections, sends its text, and closes or stays open.
    func withListener(
        saying words: String? = nil, closes: Bool = false, _ body: (Int) async throws -> Void
    ) async throws {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                guard let words else { return channel.eventLoop.makeSucceededVoidFuture() }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Speaker(words: words, closes: closes))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await body(try #require(listener.localAddress?.port))
        try await listener.close()
    }

    /// Answers the first bytes of each connection with the same text.
    private final class Speaker: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let words: String
        private let closes: Bool

        init(words: String, closes: Bool) {
            self.words = words
            self.closes = closes
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.writeAndFlush(NIOAny(ByteBuffer(string: words)), promise: nil)
            if closes { context.close(promise: nil) }
        }
    }

    func fault(_ transport: any ClientTransport, _ address: WebAddress) async -> TransportFault.Kind? {
        do {
            try await transport.withConnection(to: address) { _ in Issue.record("there is a connection") }
            return nil
        } catch {
            return error.kind
        }
    }

    func fault(_ transport: any ClientTransport, asking request: WebRequest) async -> TransportFault.Kind? {
        do {
            let answer = try await transport.send(request)
            Issue.record("there is an answer: \(answer)")
            return nil
        } catch {
            return error.kind
        }
    }

    // MARK: Trust

    @Test(arguments: Kind.allCases)
    func `a server with a certificate of the roots is connected to, and receives requests`(_ kind: Kind) async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forLocalhost.server)
        let transport = try kind.transport(trusting: .forLocalhost)
        try await transport.withConnection(to: socket("wss://localhost:\(server.port)/")) { $0.close(code: 1000) }
        #expect(try await server.nextSocket().closeCode() == 1000)
        #expect(try await transport.send(request("https://localhost:\(server.port)/v1/server")).status == 200)
    }

    @Test(arguments: Kind.allCases, [nil, TestCertificate.forElsewhere])
    func `a server that the roots do not vouch for is refused`(_ kind: Kind, _ roots: TestCertificate?) async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forLocalhost.server)
        let transport = try kind.transport(trusting: roots)
        #expect(try await fault(transport, socket("wss://localhost:\(server.port)/")) == .reachedServer)
        #expect(try await fault(transport, asking: request("https://localhost:\(server.port)/")) == .reachedServer)
        #expect(server.requests(to: "GET /").isEmpty)
    }

    @Test(arguments: Kind.allCases, [("localhost", TestCertificate.forElsewhere), ("127.0.0.1", .forLocalhost)])
    func `a certificate for another name is refused`(_ kind: Kind, _ peer: (String, TestCertificate)) async throws {
        let server = try await ScriptedServer.start(tls: peer.1.server)
        let transport = try kind.transport(trusting: peer.1)
        #expect(try await fault(transport, socket("wss://\(peer.0):\(server.port)/")) == .reachedServer)
        #expect(try await fault(transport, asking: request("https://\(peer.0):\(server.port)/")) == .reachedServer)
    }

    // MARK: Servers without an answer

    @Test(arguments: Kind.allCases)
    func `nobody there is a fault of the network`(_ kind: Kind) async throws {
        #expect(try await fault(kind.transport(), socket("ws://127.0.0.1:1/")) == .unreachable)
        #expect(try await fault(kind.transport(), asking: request("http://127.0.0.1:1/")) == .unreachable)
    }

    @Test(arguments: Kind.allCases)
    func `a server that does not upgrade is reached and refused`(_ kind: Kind) async throws {
        let server = try await ScriptedServer.start(upgrades: false)
        #expect(try await fault(kind.transport(), socket("ws://localhost:\(server.port)/")) == .refusedUpgrade)
    }

    @Test(arguments: Kind.allCases)
    func `an attempt that gets no answer ends in time`(_ kind: Kind) async throws {
        try await withListener { port in
            let transport = try kind.transport(timeout: .seconds(10))
            let (address, request) = (try socket("ws://127.0.0.1:\(port)/"), try request("http://127.0.0.1:\(port)/"))
            let attempts = [
                Task { await fault(transport, address) }, Task { await fault(transport, asking: request) },
            ]
            for attempt in attempts { #expect(await attempt.value == .timeOut) }
        }
        try await withListener(saying: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel") { port in
            let transport = try kind.transport(timeout: .seconds(10))
            #expect(await fault(transport, asking: try request("http://127.0.0.1:\(port)/")) == .timeOut)
        }
    }

    @Test(arguments: Kind.allCases)
    func `an attempt that gets no answer can be cancelled`(_ kind: Kind) async throws {
        try await withListener { port in
            let transport = try kind.transport(timeout: .seconds(1000))
            let (address, request) = (try socket("ws://127.0.0.1:\(port)/"), try request("http://127.0.0.1:\(port)/"))
            let attempts = [
                Task { await fault(transport, address) }, Task { await fault(transport, asking: request) },
            ]
            for attempt in attempts {
                attempt.cancel()
                #expect(await attempt.value != nil)
            }
        }
    }

    // MARK: Requests

    @Test(arguments: Kind.allCases)
    func `a request contains its parameters, and its answer is complete`(_ kind: Kind) async throws {
        let server = try await ScriptedServer.start()
        server.answerRegistrations(
            with: .init(
                status: .tooManyRequests, headers: ["Retry-After": "7"], body: Data("hello".utf8)))
        let answer = try await kind.transport().send(
            WebRequest(
                method: .post, address: try #require(WebAddress(http: "\(server.address)/v1/devices")), bearer: "key",
                json: Data(#"{"a":1}"#.utf8), answerLimit: 5))
        #expect(answer.status == 429)
        #expect(answer.headers["retry-after"] == "7")
        #expect(answer.body == Data("hello".utf8))
        #expect(server.received.first?.authorization == "Bearer key")
        #expect(server.received.first?.body == Data(#"{"a":1}"#.utf8))
    }

    @Test(
        arguments: Kind.allCases,
        [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "SSH-2.0-OpenSSH_9.2\r\n", "",
        ])
    func `an answer that is cut off or none at all is a fault`(_ kind: Kind, _ words: String) async throws {
        try await withListener(saying: words, closes: true) { port in
            let request = try request("http://127.0.0.1:\(port)/")
            #expect(await fault(try kind.transport(), asking: request) == .reachedServer)
        }
    }

    @Test(
        arguments: Kind.allCases,
        [
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 1001\r\n\r\n"
                + String(repeating: "x", count: 1001),
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n\r\n" + String(repeating: "x", count: 200_000),
        ])
    func `an answer that is too large has its status and no body`(_ kind: Kind, _ words: String) async throws {
        try await withListener(saying: words) { port in
            let answer = try await kind.transport().send(try request("http://127.0.0.1:\(port)/"))
            #expect(answer.status == 503 && answer.headers["retry-after"] == "7" && answer.body.isEmpty)
        }
        let longest = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + String(repeating: "x", count: 1000)
        try await withListener(saying: longest) { port in
            let answer = try await kind.transport().send(try request("http://127.0.0.1:\(port)/"))
            #expect(answer.body.count == 1000)
        }
    }

    @Test(arguments: Kind.allCases)
    func `a login page of any length is not the server's`(_ kind: Kind) async throws {
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + String(repeating: "x", count: 200_000)
        try await withListener(saying: page) { port in
            let registrar = ClientRegistrar(
                server: try #require(WebAddress(http: "http://127.0.0.1:\(port)/")), app: "com.example.app",
                clientKey: "key", transport: try kind.transport())
            guard case .failed(let failure, let error) = await registrar.register(as: "secret") else {
                Issue.record("the device is registered")
                return
            }
            #expect(failure == .unavailable(retryAfter: nil))
            #expect(error.code == .serverUnavailable && error.message.contains("status 200"), "\(error.message)")
        }
    }

    @Test(arguments: Kind.allCases)
    func `a redirect is not followed`(_ kind: Kind) async throws {
        let elsewhere = try await ScriptedServer.start()
        let words =
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: \(elsewhere.address)/v1/server\r\nContent-Length: 0\r\n\r\n"
        try await withListener(saying: words) { port in
            let answer = try await kind.transport().send(try request("http://127.0.0.1:\(port)/"))
            #expect(answer.status == 307)
        }
        #expect(elsewhere.requests(to: "GET /v1/server").isEmpty)
    }
}
