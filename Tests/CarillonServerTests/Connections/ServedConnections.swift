import CarillonWire
import Foundation
import Logging
import NIOCore
import NIOPosix
import TestStores
import TestSupport

@testable import CarillonCore
@testable import CarillonServer

/// A whole server in this process, and bytes to it over true connections.
struct ServedConnections: Sendable {
    let homes: [HomeDomain]
    let port: Int
    /// The path of the Unix socket that the server listens on instead.
    var unixSocket: String?

    /// The first home.
    var domain: HomeDomain { homes[0] }

    func home(of device: DeviceSerial) -> HomeDomain { homes.first { $0.home.has(device) } ?? domain }

    /// The number of polls that wait.
    var waiters: Int { homes.reduce(0) { $0 + $1.home.population.waiters } }

    /// The store of the server.
    var store: (any Store)? { domain.updateDelivery.store as? any Store }

    /// Serves while the closure runs.
    static func run(
        metrics: MetricsRegistry? = nil, configure: (inout ServerSettings) throws -> Void = { _ in },
        _ body: @escaping @Sendable (ServedConnections) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var settings = ServerSettings(port: 0, dataDirectory: directory)
        settings.publicURL = "https://push.example.com"
        settings.anonymousApp = "anonymous"
        settings.homes = TestHomes.count
        try configure(&settings)
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let (running, began) = AsyncStream.makeStream(of: CarillonServer.Running.self)
        let server = CarillonServer(settings: settings, stores: stores.factory, metrics: metrics, logger: logger) {
            began.yield($0)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { began.finish() }
                try await server.run()
            }
            for await running in running {
                try await body(
                    ServedConnections(homes: running.homes, port: running.port, unixSocket: settings.unixSocket))
                break
            }
            group.cancelAll()
            while let result = await group.nextResult() {
                if case .failure(let error) = result, !(error is CancellationError) { throw error }
            }
        }
    }

    /// A device with a channel.
    func openChannel(vapidKey: [UInt8]? = nil) async throws -> (token: String, credential: String, device: DeviceSerial) {
        let app = try AppID.checked("com.example.app")
        if try await domain.apps.serial(of: app) == nil { _ = try await domain.apps.create(app) }
        let (device, credential) = try await domain.devices.register(app: app)
        var random = SystemRandomNumberGenerator()
        let registration = try await home(of: device.serial).channels.register(
            ChannelID.random(using: &random), device: device.serial, name: nil, vapidKey: vapidKey)
        return (registration.token, credential.text, device.serial)
    }

    struct Answer {
        var status: Int
        /// Without the status line, in small letters.
        var fields: [String]
        var body: String

        subscript(name: String) -> String? {
            fields.first { $0.hasPrefix("\(name): ") }.map { String($0.dropFirst(name.utf8.count + 2)) }
        }
    }

    /// Sends this, and returns all data until the server closed the connection.
    func exchange(_ request: String) async throws -> String {
        let (channel, received) = try await connect()
        channel.writeAndFlush(ByteBuffer(string: request), promise: nil)
        return try await received.get()
    }

    /// A request that is the last of its connection.
    func request(_ line: String, _ fields: [String] = [], _ body: String = "") async throws -> Answer {
        let head = ["\(line) HTTP/1.1", "Host: h", "Connection: close", "Content-Length: \(body.utf8.count)"] + fields
        return Self.read(try await exchange("\(head.joined(separator: "\r\n"))\r\n\r\n\(body)"))
    }

    /// The first answer in a text.
    static func read(_ text: String) -> Answer {
        let end = text.range(of: "\r\n\r\n") ?? text.endIndex..<text.endIndex
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        return Answer(
            status: lines.first.flatMap { Int($0.dropFirst(9).prefix(3)) } ?? 0,
            fields: lines.dropFirst().map { line in
                let parts = line.split(separator: ":", maxSplits: 1)
                return "\(parts[0].lowercased()):\(parts.count > 1 ? parts[1] : "")"
            }, body: String(text[end.upperBound...]))
    }

    /// Sends this, and then the same piece again and again, until the server closes the connection.
    func flood(_ start: String, _ piece: String, atMost bytes: Int) async throws -> (answer: String, sent: Int) {
        let (channel, received) = try await connect()
        var sent = 0
        do {
            try await channel.writeAndFlush(ByteBuffer(string: start))
            while sent < bytes {
                try await channel.writeAndFlush(ByteBuffer(string: piece))
                sent += piece.utf8.count
            }
        } catch {
            // The server is done with it.
        }
        if sent >= bytes { channel.close(promise: nil) }
        return (try await received.get(), sent)
    }

    func connect() async throws -> (any NIOCore.Channel, EventLoopFuture<String>) {
        let group = MultiThreadedEventLoopGroup.singleton
        let loop = group.next()
        let received = loop.makePromise(of: String.self)
        do {
            let bootstrap = ClientBootstrap(group: loop).channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Collector(received))
                }
            }
            let connected =
                unixSocket.map { bootstrap.connect(unixDomainSocketPath: $0) }
                ?? bootstrap.connect(host: "127.0.0.1", port: port)
            return (try await connected.get(), received.futureResult)
        } catch {
            received.fail(error)
            throw error
        }
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var bytes = ByteBuffer()
        private let received: EventLoopPromise<String>

        init(_ received: EventLoopPromise<String>) { self.received = received }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes.writeImmutableBuffer(Self.unwrapInboundIn(data))
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        func channelInactive(context: ChannelHandlerContext) { received.succeed(String(buffer: bytes)) }
    }
}
