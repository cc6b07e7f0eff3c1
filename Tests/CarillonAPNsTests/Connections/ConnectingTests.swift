import CarillonAPNs
import NIOCore
import NIOPosix
import Synchronization
import Testing

/// What happens before the first push: names, TLS, proxies, and hosts that are not what they should be.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct ConnectingTests {
    @Test func `a certificate that is not trusted is said at once, with what to do`() async throws {
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

    @Test func `a host without HTTP 2 is said to be the wrong one`() async throws {
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
        configuration.timeout = .milliseconds(300)
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

    @Test(arguments: [true, false]) func `a proxy connects onward, or says why not`(allows: Bool) async throws {
        let stage = try await Stage()
        let proxy = try await ConnectProxy(allows: allows)
        var configuration = stage.client.configuration
        configuration.proxy = APNsClient.Proxy(host: "127.0.0.1", port: proxy.port, authorization: "Basic dTpw")
        configuration.timeout = .seconds(allows ? 20 : 1)
        let client = try APNsClient(configuration)
        if allows {
            #expect(try await client.send(.alert("Hi"), to: Samples.token).isAccepted)
        } else {
            let error = await #expect(throws: APNsError.self) { try await client.send(.alert("Hi"), to: Samples.token) }
            #expect(error?.code == .connectionFailed)
        }
        #expect(proxy.head.contains("CONNECT localhost:\(stage.server.port) HTTP/1.1"))
        #expect(proxy.head.contains("Proxy-Authorization: Basic dTpw"))
        await client.shutDown(drains: false)
        try await stage.end()
        try await proxy.close()
    }

    @Test func `settings that cannot work are refused with their name`() throws {
        for (change, name): (@Sendable (inout APNsClient.Configuration) -> Void, String) in [
            ({ $0.timeout = .zero }, "timeout"), ({ $0.queueLimit = 0 }, "queueLimit"),
            ({ $0.pool.minimum = 9 }, "pool.maximum"), ({ $0.trustRoots = "x" }, "trustRoots"),
            ({ $0.bundleID = "" }, "bundleID"), ({ $0.batchWindow = 0 }, "batchWindow"),
        ] {
            var configuration = APNsClient.Configuration(credentials: try Samples.credentials())
            change(&configuration)
            let error = #expect(throws: APNsError.self) { try APNsClient(configuration) }
            #expect(error?.code == .configurationInvalid)
            #expect(error?.message.contains(name) == true, "\(error?.message ?? "")")
        }
    }

    static func client(
        _ port: Int, _ certificates: TestCertificates, _ credentials: APNsCredentials? = nil
    ) throws -> APNsClient {
        var configuration = APNsClient.Configuration(
            credentials: try credentials ?? Samples.credentials(), bundleID: "com.example.app",
            environment: .custom(host: "localhost", port: port))
        configuration.trustRoots = certificates.authorityPEM
        return try APNsClient(configuration)
    }
}

/// A proxy that knows CONNECT alone.
final class ConnectProxy: Sendable {
    let port: Int
    private let listener: any NIOCore.Channel
    private let headBox: HeadBox

    var head: String { headBox.text.withLock { $0 } }

    init(allows: Bool) async throws {
        let head = HeadBox()
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ProxyHandler(allows: allows, head: head))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
        headBox = head
    }

    func close() async throws { try await listener.close() }
}

final class HeadBox: Sendable {
    let text = Mutex("")
}

private final class ProxyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let allows: Bool
    private let head: HeadBox
    private var onward: (any NIOCore.Channel)?
    private var hasHead = false

    init(allows: Bool, head: HeadBox) {
        self.allows = allows
        self.head = head
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if let onward {
            onward.writeAndFlush(bytes, promise: nil)
            return
        }
        guard !hasHead else { return }
        let text = head.text.withLock { text in
            text += String(buffer: bytes)
            return text
        }
        guard text.contains("\r\n\r\n") else { return }
        hasHead = true
        guard allows, let target = text.split(separator: " ").dropFirst().first?.split(separator: ":").last,
            let port = Int(target)
        else {
            context.writeAndFlush(
                wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")), promise: nil)
            return
        }
        let back = context.channel
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        ClientBootstrap(group: context.eventLoop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(RelayHandler(back: back))
                }
            }
            .connect(host: "localhost", port: port)
            .whenSuccess { channel in
                bound.value.onward = channel
                back.writeAndFlush(ByteBuffer(string: "HTTP/1.1 200 OK\r\n\r\n"), promise: nil)
            }
    }

    func channelInactive(context: ChannelHandlerContext) { onward?.close(promise: nil) }
}

private final class RelayHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let back: any NIOCore.Channel

    init(back: any NIOCore.Channel) { self.back = back }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        back.writeAndFlush(unwrapInboundIn(data), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { back.close(promise: nil) }
}
