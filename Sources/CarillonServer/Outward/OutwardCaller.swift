import CarillonAPNs
import CarillonBasics
import CarillonCore
import CarillonWire
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// Sends requests to addresses that come from clients, publishers or operators.
///
/// A name is resolved once, its addresses are checked, and the connection uses one of exactly these addresses, even if the name
/// changes meanwhile. Redirects are not followed, proxies are not used, and no state is kept between calls. The response is
/// limited in size and time.
struct OutwardCaller: Sendable {
    struct Request: Sendable {
        var method = HTTPMethod.POST
        var address: CallAddress
        var headers: [(name: String, value: String)] = []
        var body: [UInt8] = []
        /// The largest body of the response. A larger body makes the call fail.
        var answerBytes = 0
        /// Whether the body of an unsuccessful response is also needed.
        var wantsRefusals = false
    }

    /// The result of a call, and the body of the response if it was requested.
    struct Answer: Sendable {
        var result: CallResult
        var body: [UInt8] = []
    }

    private let group: any EventLoopGroup
    private let resolver: NameResolver
    private let rules: CallRules
    private let tls: NIOSSLContext
    private let answerTime: TimeAmount
    private let stopTime: TimeAmount

    /// The longest time for all attempts to connect together.
    static let connectMilliseconds: Int64 = 6000
    private static let attempts = 4

    /// - Throws: if the file of certificates cannot be read.
    init(group: any EventLoopGroup, resolver: NameResolver, settings: OutwardSettings) throws {
        self.group = group
        self.resolver = resolver
        rules = settings.rules
        answerTime = .seconds(Int64(settings.answerSeconds))
        stopTime = .milliseconds(settings.stopMilliseconds)
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        if let file = settings.authorityFile {
            configuration.additionalTrustRoots = [.certificates(try KeyMaterial(path: file).tlsCertificates())]
        }
        tls = try NIOSSLContext(configuration: configuration)
    }

    func call(_ request: Request) async -> CallResult { await ask(request).result }

    func ask(_ request: Request) async -> Answer {
        let found: [NetworkAddress]
        switch request.address.host {
        case .literal(let literal):
            found = [literal]
        case .name(let name):
            switch await resolver.addresses(of: name) {
            case .addresses(let addresses): found = addresses
            case .notFound(let why):
                return Answer(result: .failed(.nameNotResolved, detail: "the name was not resolved: \(why)"))
            case .notSent(let reason): return Answer(result: .notMade(reason: reason))
            }
        }
        let allowed = rules.allowed(found).prefix(Self.attempts)
        guard !allowed.isEmpty else {
            return Answer(
                result: .failed(
                    .noConnection,
                    detail: "the address is in a private, local or reserved network, which is not allowed"))
        }
        return await connect(request, to: Array(allowed))
    }

    private func connect(_ request: Request, to addresses: [NetworkAddress]) async -> Answer {
        let end = NIODeadline.now() + .milliseconds(Self.connectMilliseconds)
        var reason = "cannot connect to any of its addresses"
        for (index, address) in addresses.enumerated() {
            let time = (end - .now()).nanoseconds / Int64(addresses.count - index)
            guard time > 0 else { break }
            guard !Task.isCancelled else { return Answer(result: .notMade(reason: "the server is stopping")) }
            do {
                let exchange = try await begin(request, to: address, within: .nanoseconds(time))
                return await exchange.result(whenStopped: stopTime)
            } catch let error as IOError where Self.isOurs(error) {
                return Answer(result: .notMade(reason: SystemErrorText.of(error.errnoCode)))
            } catch let error as IOError {
                reason = "connecting failed: \(SystemErrorText.of(error.errnoCode))"
            } catch is ChannelError {
                reason = "connecting took too long"
            } catch {
                reason = "connecting failed"
            }
        }
        return Answer(result: .failed(.noConnection, detail: reason))
    }

    private func begin(
        _ request: Request, to address: NetworkAddress, within time: TimeAmount
    ) async throws -> OutwardExchange {
        let loop = group.next()
        let result = loop.makePromise(of: Answer.self)
        do {
            let channel = try await ClientBootstrap(group: loop)
                .connectTimeout(time)
                .channelInitializer { [tls, answerTime] channel in
                    channel.eventLoop.makeCompletedFuture {
                        try Self.setUp(channel, request, tls: tls, answerTime: answerTime, result: result)
                    }
                }
                .connect(to: SocketAddress(packedIPAddress: ByteBuffer(bytes: address.bytes), port: request.address.port))
                .get()
            return OutwardExchange(channel: channel, answer: result.futureResult)
        } catch {
            result.fail(error)
            throw error
        }
    }

    private static func setUp(
        _ channel: any Channel, _ request: Request, tls: NIOSSLContext, answerTime: TimeAmount,
        result: EventLoopPromise<Answer>
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        if request.address.isSecure {
            // The certificate of a literal address is compared with the address of the connection.
            var name: String?
            if case .name(let host) = request.address.host { name = host }
            try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
        }
        try pipeline.addHandlers([
            AnswerBudget(bytes: AnswerBudget.bytes + request.answerBytes), HTTPRequestEncoder(),
            ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes)),
            OutwardHandler(request, answerTime: answerTime, result: result),
        ])
    }

    /// Whether an error is a fault of this machine, and not of the other one.
    private static func isOurs(_ error: IOError) -> Bool {
        [EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL].contains(error.errnoCode)
    }
}

/// One call with an open connection.
struct OutwardExchange: Sendable {
    let channel: any Channel
    let answer: EventLoopFuture<OutwardCaller.Answer>

    /// Waits for the response. A cancelled task waits for a limited time longer, and then fails.
    func result(whenStopped time: TimeAmount) async -> OutwardCaller.Answer {
        await withTaskCancellationHandler {
            do {
                return try await answer.get()
            } catch {
                return OutwardCaller.Answer(result: .notMade(reason: "the call ended without an answer"))
            }
        } onCancel: {
            _ = channel.eventLoop.scheduleTask(in: time) {
                channel.pipeline.fireUserInboundEventTriggered(CallAbandoned())
            }
        }
    }
}

/// The server stops and no longer waits.
struct CallAbandoned: Sendable {}
