import Foundation
import NIOCore
import NIOSSL
import Testing

@testable import CarillonAPNs

/// The steps before the first push: names, TLS, proxies, and unsuitable hosts.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ConnectingTests {
    @Test func `an untrusted certificate is reported at once, with advice`() async throws {
        let stage = try await Stage(configure: { $0.trustRoots = nil })
        let error = await #expect(throws: APNsError.self) {
            try await stage.client.send(.alert("Hi"), to: Samples.token)
        }
        #expect(error?.code == .connectionFailed)
        #expect(error?.message.contains("trustRoots") == true, "\(String(describing: error))")
        #expect(error?.mayHaveBeenProcessed == false)
        try await stage.end()
    }

    @Test func `a certificate for another name is refused`() async throws {
        let certificates = try TestCertificates()
        let server = try await ScriptedServer(tls: certificates.serverContext(names: ["elsewhere.example"])) {
            $0.accept($1)
        }
        let client = try Self.client(server.port, certificates)
        let error = await #expect(throws: APNsError.self) { try await client.send(.alert("Hi"), to: Samples.token) }
        #expect(error?.code == .connectionFailed)
        await client.shutDown(drains: false)
        try await server.close()
    }

    @Test func `a host without HTTP 2 is reported as the wrong host`() async throws {
        let certificates = try TestCertificates()
        let server = try await ScriptedServer(tls: certificates.serverContext(protocols: ["http/1.1"])) { $0.accept($1) }
        let client = try Self.client(server.port, certificates)
        let error = await #expect(throws: APNsError.self) { try await client.send(.alert("Hi"), to: Samples.token) }
        #expect(error?.message.contains("HTTP/2") == true)
        await client.shutDown(drains: false)
        try await server.close()
    }

    @Test func `a host that cannot be reached fails the push at its deadline, with the reason`() async throws {
        var configuration = APNsClient.Configuration(
            credentials: try Samples.credentials(), bundleID: "com.example.app",
            environment: .custom(host: "127.0.0.1", port: 1))
        configuration.timeout = .seconds(10)
        let client = try APNsClient(configuration)
        let error = await #expect(throws: APNsError.self) { try await client.send(.alert("Hi"), to: Samples.token) }
        #expect(error?.code == .connectionFailed)
        #expect(error?.mayHaveBeenProcessed == false)
        let warmUp = await #expect(throws: APNsError.self) { try await client.warmUp() }
        #expect(warmUp?.code == .connectionFailed)
        await client.shutDown()
    }

    @Test func `a certificate connection sends no authorization, and may use all streams at once`() async throws {
        let certificates = try TestCertificates()
        let server = try await ScriptedServer(tls: certificates.serverContext(demandsClient: true)) { $0.accept($1) }
        let (certificate, key) = try certificates.issue()
        let client = try Self.client(
            server.port, certificates, .certificate(try APNsCertificate(pem: certificate, privateKeyPEM: key)))
        var accepted = 0
        for await result in try client.send(.alert("Hi"), to: Samples.tokens(100)) where result.isAccepted { accepted += 1 }
        #expect(accepted == 100)
        #expect(server.requests.allSatisfy { $0.headers["authorization"] == nil })
        await client.shutDown()
        try await server.close()
    }

    @Test(arguments: [true, false]) func `a proxy connects onward, or returns the reason of its refusal`(allows: Bool)
        async throws
    {
        let stage = try await Stage()
        let proxy = try await ConnectProxy(allows: allows)
        var configuration = stage.client.configuration
        configuration.proxy = .http(host: "127.0.0.1", port: proxy.port, authorization: "Basic dTpw")
        let client = try APNsClient(configuration)
        if allows {
            #expect(try await client.send(.alert("Hi"), to: Samples.token).isAccepted)
        } else {
            let error = await #expect(throws: APNsError.self) { try await client.warmUp() }
            #expect(error?.code == .connectionFailed)
            #expect(error?.message.contains("does not connect to") == true, "\(error?.message ?? "")")
        }
        #expect(proxy.head.contains("CONNECT localhost:\(stage.server.port) HTTP/1.1"))
        #expect(proxy.head.contains("Proxy-Authorization: Basic dTpw"))
        await client.shutDown(drains: false)
        try await stage.end()
        try await proxy.close()
    }

    @Test(arguments: [true, false]) func `a SOCKS proxy connects onward, or returns the reason of its refusal`(allows: Bool)
        async throws
    {
        let stage = try await Stage()
        let proxy = try await SocksProxy(allows: allows)
        var configuration = stage.client.configuration
        configuration.proxy = .socks(host: "127.0.0.1", port: proxy.port)
        let client = try APNsClient(configuration)
        if allows {
            #expect(try await client.send(.alert("Hi"), to: Samples.token).isAccepted)
        } else {
            let error = await #expect(throws: APNsError.self) { try await client.warmUp() }
            #expect(error?.message.contains("does not connect to") == true, "\(error?.message ?? "")")
        }
        // The proxy resolves the name.
        #expect(proxy.targets == ["localhost:\(stage.server.port)"])
        await client.shutDown(drains: false)
        try await stage.end()
        try await proxy.close()
    }

    @Test func `a service that requires a certificate and receives none is reported at once`() async throws {
        let certificates = try TestCertificates()
        let server = try await ScriptedServer(tls: certificates.serverContext(demandsClient: true)) { $0.accept($1) }
        // A push has more time than the suite.
        let client = try Self.client(server.port, certificates, timeout: .seconds(3600))
        let error = await #expect(throws: APNsError.self) { try await client.send(.alert("Hi"), to: Samples.token) }
        #expect(error?.code == .connectionFailed)
        #expect(error?.message.contains("client's certificate") == true, "\(error?.message ?? "")")
        await client.shutDown(drains: false)
        try await server.close()
    }

    @Test(arguments: [
        ("no-such-host.invalid", 443, "No address was found for no-such-host.invalid"),
        ("127.0.0.1", 1, "refuses connections"),
    ])
    func `an unreachable host is reported with advice`(host: String, port: Int, words: String) async throws {
        let client = try APNsClient(
            .init(credentials: try Samples.credentials(), environment: .custom(host: host, port: port)))
        let error = await #expect(throws: APNsError.self) { try await client.warmUp() }
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
        await client.shutDown()
    }

    /// A TLS alert that ends a handshake.
    static func alert(_ number: UInt8) -> [UInt8] { [0x15, 3, 3, 0, 2, 2, number] }

    @Test(arguments: [
        (alert(40), #"refused TLS with the alert "handshake failure""#), (alert(70), #""protocol version""#),
        (alert(112), #""unrecognized name""#), (alert(80), #""internal error""#),
        (Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), "does not support TLS"), ([], "whether the port is for TLS"),
    ])
    func `a TLS alert of the host is reported with a sentence`(answer: [UInt8], words: String) async throws {
        let listener = try await CannedListener(answer)
        let client = try APNsClient(
            .init(
                credentials: try Samples.credentials(), bundleID: "com.example.app",
                environment: .custom(host: "127.0.0.1", port: listener.port)))
        let error = await #expect(throws: APNsError.self) { try await client.warmUp() }
        Self.expectWords(words, error)
        await client.shutDown(drains: false)
        try await listener.close()
    }

    @Test(arguments: [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
            "it requires authorization"
        ),
        ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "it answered with status 502"),
        ("nonsense\r\n\r\n", "does not"),
        ("", "does not"),
    ])
    func `the reason of an HTTP proxy that does not connect is reported`(answer: String, words: String) async throws {
        let error = try await Self.error(through: { .http(host: "127.0.0.1", port: $0) }, answering: Array(answer.utf8))
        Self.expectWords(words, error)
        #expect(error?.message.contains("he proxy 127.0.0.1:") == true, "\(error?.message ?? "")")
    }

    @Test(
        arguments: [
            ([5, 0xFF], "requires a name and a password"), ([5, 2], "requires a name and a password"),
            ([4, 90], "does not support SOCKS 5"),
            ([], "closed the connection"),
        ] as [([UInt8], String)])
    func `the reason of a SOCKS proxy that does not connect is reported`(answer: [UInt8], words: String) async throws {
        let error = try await Self.error(through: { .socks(host: "127.0.0.1", port: $0) }, answering: answer)
        Self.expectWords(words, error)
        #expect(error?.message.contains("he proxy 127.0.0.1:") == true, "\(error?.message ?? "")")
    }

    private static func error(
        through proxy: (Int) -> APNsClient.Proxy, answering answer: [UInt8]
    ) async throws -> APNsError? {
        let listener = try await CannedListener(answer)
        var configuration = APNsClient.Configuration(
            credentials: try Samples.credentials(), bundleID: "com.example.app",
            environment: .custom(host: "localhost", port: 1))
        configuration.proxy = proxy(listener.port)
        let client = try APNsClient(configuration)
        let error = await #expect(throws: APNsError.self) { try await client.warmUp() }
        await client.shutDown(drains: false)
        try await listener.close()
        return error
    }

    /// A text for people: without names of a library's types and files.
    private static func expectWords(_ words: String, _ error: APNsError?) {
        let message = error?.message ?? ""
        #expect(error?.code == .connectionFailed)
        #expect(message.contains(words), "\(message)")
        for internals in ["NIO", "SSL:", "BoringSSL", "errno", "_", "Error(", ".swift", "ssl."] {
            #expect(!message.contains(internals), "\(message)")
        }
    }

    @Test(arguments: [
        (ConnectionFault.Kind.notHTTP2, true), (.protocolViolated, false), (.goneAway, false), (.silent, false),
    ])
    func `a host that broke the protocol once is tried again, and one that speaks another is not`(
        kind: ConnectionFault.Kind, isLasting: Bool
    ) {
        let opener = ConnectionOpener(
            address: .init(host: "localhost", port: 1), tls: nil, proxy: nil, timeout: .seconds(1))
        let failure = ConnectFailure(ConnectionFault(kind, "It is told."), to: opener)
        #expect(failure.isLasting == isLasting)
        #expect(failure.error.message == "localhost:1: It is told.")
    }

    @Test func `the end of a connection is reported with a sentence`() {
        let reset = IOError(errnoCode: ECONNRESET, reason: "read(descriptor:pointer:size:)")
        #expect(ConnectFailure.ending(reset) == "The service reset the connection.")
        #expect(ConnectFailure.ending(IOError(errnoCode: EINVAL, reason: "x")) == "The connection broke.")
        #expect(ConnectFailure.ending(NIOSSLError.unableToValidateCertificate) == "TLS failed.")
        #expect(ConnectFailure.ending(ChannelError.eof) == "The connection broke.")
    }

    @Test func `the environment of a record is checked, too`() async throws {
        let client = try APNsClient(.init(credentials: try Samples.credentials(), bundleID: "com.example.app"))
        let error = await #expect(throws: APNsError.self) {
            try await client.send(
                .alert("Hi"), to: APNsDeviceToken(Samples.token, in: .custom(host: "10.0.0.1", port: 65_979)))
        }
        #expect(error?.code == .configurationInvalid)
        await client.shutDown()
    }

    @Test func `a service that speaks an old TLS is not spoken to`() async throws {
        let certificates = try TestCertificates()
        let server = try await ScriptedServer(tls: certificates.serverContext(newestTLS: .tlsv11)) { $0.accept($1) }
        let client = try Self.client(server.port, certificates)
        let error = await #expect(throws: APNsError.self) { try await client.warmUp() }
        #expect(error?.message.contains("TLS") == true, "\(error?.message ?? "")")
        #expect(server.requests.isEmpty)
        await client.shutDown()
        try await server.close()
    }

    @Test func `settings that cannot work are refused with their name`() throws {
        for (change, name): (@Sendable (inout APNsClient.Configuration) -> Void, String) in [
            ({ $0.timeout = .zero }, "timeout"), ({ $0.queueLimit = 0 }, "queueLimit"),
            ({ $0.pool.minimum = 9 }, "pool.maximum"), ({ $0.trustRoots = "x" }, "trustRoots"),
            ({ $0.bundleID = "" }, "bundleID"), ({ $0.batchWindow = 0 }, "batchWindow"),
            ({ $0.proxy = .socks(host: "", port: 1080) }, "proxy"),
            ({ $0.environment = .custom(host: String(repeating: "x", count: 254), port: 1) }, "host"),
            ({ $0.environment = .custom(host: "localhost", port: 70_000) }, "port"),
            ({ $0.environment = .custom(host: "localhost", port: 443, managementPort: 0) }, "port"),
            ({ $0.pool.answersPingWithin = .zero }, "answersPingWithin"),
            ({ $0.pool.growsAfter = .seconds(-1) }, "growsAfter"),
        ] {
            var configuration = APNsClient.Configuration(credentials: try Samples.credentials())
            change(&configuration)
            let error = #expect(throws: APNsError.self) { try APNsClient(configuration) }
            #expect(error?.code == .configurationInvalid)
            #expect(error?.message.contains(name) == true, "\(error?.message ?? "")")
        }
    }

    static func client(
        _ port: Int, _ certificates: TestCertificates, _ credentials: APNsCredentials? = nil,
        timeout: Duration = .seconds(30)
    ) throws -> APNsClient {
        var configuration = APNsClient.Configuration(
            credentials: try credentials ?? Samples.credentials(), bundleID: "com.example.app",
            environment: .custom(host: "localhost", port: port))
        configuration.trustRoots = certificates.authorityPEM
        configuration.timeout = timeout
        return try APNsClient(configuration)
    }
}
