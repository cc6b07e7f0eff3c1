import Logging
import Metrics
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Sends notifications through the Apple Push Notification service (APNs).
///
/// Make one client for each team and keep it. The client keeps its connections open, opens more when there is more to send,
/// and needs no call to start. A client that is released closes its connections after the last response.
///
/// ```swift
/// let key = try APNsCredentials.token(p8: "AuthKey.p8", keyID: "ABC1234567", teamID: "DEF1234567")
/// let client = try APNsClient(.init(credentials: key, bundleID: "com.example.app"))
/// let response = try await client.send(.alert(title: "Hello"), to: deviceToken)
/// ```
///
/// In a service group, run the client as a service, so that the responses to sent pushes arrive before the process ends.
public final class APNsClient: Sendable {
    /// The configuration with which the client was made. Its credentials are not changed by ``rotate(to:)``.
    public let configuration: Configuration

    private struct Identity {
        var credentials: APNsCredentials
        var tokens: ProviderTokens?
        var tls: NIOSSLContext
    }

    private struct State {
        var identity: Identity
        var pools: [APNsEnvironment.Address: ConnectionPool] = [:]
        var isShutDown = false
    }

    private let state: Mutex<State>

    /// Makes a client. No connection is opened before the first push or ``warmUp(_:)``.
    /// - Throws: ``APNsError`` if a setting is invalid or the certificate is not valid now.
    public init(_ configuration: Configuration) throws(APNsError) {
        try configuration.check()
        self.configuration = configuration
        let identity = try Self.identity(of: configuration.credentials, configuration)
        state = Mutex(State(identity: identity))
    }

    deinit {
        for pool in state.withLock({ Array($0.pools.values) }) { pool.command(.shutDown(drains: true, nil)) }
    }

    private static func identity(
        of credentials: APNsCredentials, _ configuration: Configuration
    ) throws(APNsError) -> Identity {
        var tls = try configuration.trust()
        var tokens: ProviderTokens?
        switch credentials.kind {
        case .token(let key):
            let logger = configuration.logger
            let factory = configuration.metrics ?? MetricsSystem.factory
            tokens = ProviderTokens(source: .shared(for: key, time: configuration.timeSource)) {
                TokenRenewals.count(factory)
                logger.debug("provider token renewed", metadata: ["key": "\(key.keyID)"])
            }
        case .certificate(let certificate):
            try certificate.checkValidity(at: configuration.timeSource.wallSeconds())
            tls.certificateChain = certificate.chain.map { .certificate($0) }
            tls.privateKey = .privateKey(certificate.key)
        }
        do {
            return Identity(credentials: credentials, tokens: tokens, tls: try NIOSSLContext(configuration: tls))
        } catch {
            throw APNsError(
                .credentialsInvalid, "TLS does not accept the certificate; check its chain and its private key.",
                cause: error)
        }
    }

    /// Replaces the push credentials. New pushes use new connections. Pushes that are under way are answered on the old
    /// connections.
    ///
    /// If the signing key is the same, the client keeps using the signed token.
    public func rotate(to credentials: APNsCredentials) throws(APNsError) {
        let identity = try Self.identity(of: credentials, configuration)
        state.withLock { state in
            state.identity = identity
            for (address, pool) in state.pools {
                pool.command(.credentials(opener(of: address, identity), identity.tokens))
            }
        }
    }

    /// Opens the pool's minimum number of connections, so that the first push does not wait for them.
    /// - Throws: ``APNsError`` if APNs cannot be reached, or if the task is cancelled.
    public func warmUp(_ environment: APNsEnvironment? = nil) async throws(APNsError) {
        let pool = try pool(of: (environment ?? configuration.environment).push)
        let ticket = WarmUpTicket()
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { pool.command(.warmUp(ticket, $0)) }
        } onCancel: {
            ticket.withdraw()
            pool.command(.withdrawWarmUp(ticket))
        }
        try result.get()
    }

    /// Ends the client. No further push is accepted.
    /// - Parameter drains: whether to wait for the responses to the accepted pushes. Otherwise these pushes fail, and each
    ///   error reports whether the push may have been processed.
    public func shutDown(drains: Bool = true) async {
        let pools = state.withLock { state in
            state.isShutDown = true
            return Array(state.pools.values)
        }
        await withTaskGroup(of: Void.self) { group in
            for pool in pools {
                group.addTask { await withUnsafeContinuation { pool.command(.shutDown(drains: drains, $0)) } }
            }
        }
    }

    /// Abandons all pushes that are under way, at once.
    func abandon() {
        for pool in state.withLock({ Array($0.pools.values) }) { pool.command(.shutDown(drains: false, nil)) }
    }

    /// Withdraws the pushes of a batch that are under way.
    func withdraw(_ box: BatchBox) {
        for pool in state.withLock({ Array($0.pools.values) }) { pool.command(.withdraw(box)) }
    }

    var usesToken: Bool { state.withLock { $0.identity.credentials.usesToken } }

    func context(channelID: String? = nil) -> PreparedNotification.Context {
        PreparedNotification.Context(
            bundleID: configuration.bundleID, usesToken: usesToken, channelID: channelID,
            fallbackID: nil)
    }

    func pool(of address: APNsEnvironment.Address) throws(APNsError) -> ConnectionPool {
        try state.withLock { state throws(APNsError) in
            guard !state.isShutDown else { throw ConnectionPool.shutDownError }
            if let pool = state.pools[address] { return pool }
            try address.check()
            let pool = ConnectionPool(
                loop: MultiThreadedEventLoopGroup.singleton.next(), options: options(of: address, state.identity),
                time: configuration.timeSource, opener: opener(of: address, state.identity),
                tokens: state.identity.tokens,
                metrics: PoolMetrics(
                    environment: address.host, factory: configuration.metrics ?? MetricsSystem.factory,
                    trace: configuration.trace),
                logger: configuration.logger)
            state.pools[address] = pool
            return pool
        }
    }

    private func opener(of address: APNsEnvironment.Address, _ identity: Identity) -> ConnectionOpener {
        ConnectionOpener(
            address: address, tls: address.isSecure ? identity.tls : nil, proxy: configuration.proxy,
            timeout: configuration.connectTimeout)
    }

    private func options(of address: APNsEnvironment.Address, _ identity: Identity) -> ConnectionPool.Options {
        let pool = configuration.pool
        var connection = ConnectionMachine.Options()
        connection.maximumStreams = pool.streamsPerConnection
        connection.startsWithOneStream = identity.credentials.usesToken
        connection.pingsAfterIdle = pool.pingsAfterIdle
        connection.suspectsAfter = pool.suspectsAfter
        connection.answersPingWithin = pool.answersPingWithin
        connection.authority = address.port == 443 ? address.uriHost : "\(address.uriHost):\(address.port)"
        connection.isSecure = address.isSecure
        connection.firstStream = configuration.firstStream
        connection.indexesAuthorization = configuration.indexesAuthorization
        var machine = PoolMachine.Options(
            minimum: pool.minimum, maximum: pool.maximum, idleLimit: pool.idleLimit, growsAfter: pool.growsAfter)
        machine.replacedAtOnce = Double(max(4, 2 * pool.maximum))
        machine.replacedPerSecond = configuration.replacedPerSecond ?? Double(max(8, pool.maximum)) / 8
        return ConnectionPool.Options(
            pool: machine, connection: connection, queueLimit: configuration.queueLimit, policy: configuration.retryPolicy)
    }
}
