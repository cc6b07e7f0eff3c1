import CarillonBasics
public import Logging
public import Metrics
import NIOCore
import NIOSSL

extension APNsClient {
    /// The settings of a client. All settings except the credentials have a safe default.
    public struct Configuration: Sendable {
        /// The push credentials.
        public var credentials: APNsCredentials
        /// The app, whose bundle ID is part of the APNs topic. A notification can name another app.
        public var bundleID: String?
        /// The environment for recipients that have none.
        public var environment: APNsEnvironment = .production
        /// The time limit of a push, from the call until the response, without the delays of the retry policy.
        public var timeout: Duration = .seconds(30)
        /// The time limit for opening a connection.
        public var connectTimeout: Duration = .seconds(10)
        /// The largest number of pushes that are under way or waiting. A further push fails with
        /// ``APNsError/Code/queueFull``. Pushes of batches are not counted, because ``APNsClient/Configuration/batchWindow`` limits them.
        public var queueLimit = 50_000
        /// The largest number of pushes of one batch that are under way at once.
        public var batchWindow = 2000
        /// The rules by which a push is sent again.
        public var retryPolicy: APNsRetryPolicy = .standard
        /// The number of connections, and the times after which they are opened, checked and closed.
        public var pool = Pool()
        /// A proxy that connects to APNs.
        public var proxy: Proxy?
        /// The PEM text of the certificate authorities that are trusted instead of the system's. It is read in the same way
        /// as in ``APNsCertificate/init(pem:privateKeyPEM:passphrase:)``.
        public var trustRoots: String?
        /// Whether the provider token is stored in the connection's header table, which saves 200 bytes for each push.
        /// Apple's pages contradict each other; the live service accepts both.
        public var indexesAuthorization = true
        /// The client's logger. No token, key or payload is ever logged.
        public var logger = Logger(label: "carillon.apns")
        /// The factory of the client's metrics; nil for the factory of the process (`MetricsSystem`).
        public var metrics: (any MetricsFactory)?
        /// A function that is called for each finished push, on a thread of the client. It must return at once.
        public var trace: (@Sendable (Trace) -> Void)?
        /// The clocks of the client.
        public var timeSource: APNsTimeSource = .system
        /// The first stream number of a connection, so that a test can exhaust the numbers.
        var firstStream: UInt32 = 1
        /// How many lost connections are replaced per second, so that a test can lose many.
        var replacedPerSecond: Double?

        /// Makes a configuration from the settings that have no safe default.
        public init(
            credentials: APNsCredentials, bundleID: String? = nil, environment: APNsEnvironment = .production
        ) {
            self.credentials = credentials
            self.bundleID = bundleID
            self.environment = environment
        }
    }

    /// The number of connections to one host, and the times after which they are opened, checked and closed.
    public struct Pool: Sendable {
        /// The number of connections that are kept open after the first push or ``APNsClient/warmUp(_:)``.
        public var minimum = 1
        /// The largest number of connections that accept pushes. A replaced connection that waits for responses is not
        /// counted.
        public var maximum = 8
        /// The largest number of pushes that are under way on one connection, even if APNs allows more.
        public var streamsPerConnection = 1000
        /// The time that pushes wait because all connections are full, after which a connection is added.
        public var growsAfter: Duration = .milliseconds(50)
        /// The time after which an unused connection above the minimum is closed.
        public var idleLimit: Duration = .seconds(300)
        /// The time without received data after which a connection without pushes is pinged.
        public var pingsAfterIdle: Duration = .seconds(600)
        /// The time without received data after which a connection that waits for responses is pinged.
        public var suspectsAfter: Duration = .seconds(5)
        /// The time in which a ping must be answered. Otherwise the connection is replaced.
        public var answersPingWithin: Duration = .seconds(5)

        /// Makes a pool with the safe defaults.
        public init() {}
    }

    /// A proxy, which resolves the name of APNs and connects to it. The data that passes through the proxy is encrypted for
    /// APNs.
    public enum Proxy: Hashable, Sendable {
        /// HTTP CONNECT (RFC 9110 section 9.3.6). The authorization is the value of `Proxy-Authorization`, for instance
        /// `Basic dXNlcjpwYXNz`.
        case http(host: String, port: Int, authorization: String? = nil)
        /// SOCKS 5 (RFC 1928) without authentication.
        case socks(host: String, port: Int)

        var address: (host: String, port: Int) {
            switch self {
            case .http(let host, let port, _), .socks(let host, let port): (host, port)
            }
        }
    }

    /// The report about one finished push.
    public struct Trace: Sendable {
        /// The host of the environment.
        public let environment: String
        /// The time from the call until the response.
        public let duration: Duration
        /// `accepted`, the reason of APNs, or the name of an ``APNsError/Code``.
        public let outcome: String
    }
}

extension APNsClient.Configuration {
    func check() throws(APNsError) {
        let rules: [(Bool, String)] = [
            (timeout > .zero, "timeout must be more than 0; it is \(timeout)."),
            (connectTimeout > .zero, "connectTimeout must be more than 0; it is \(connectTimeout)."),
            (queueLimit > 0, "queueLimit must be at least 1; it is \(queueLimit)."),
            (batchWindow > 0, "batchWindow must be at least 1; it is \(batchWindow)."),
            (pool.minimum >= 0, "pool.minimum must not be below 0; it is \(pool.minimum)."),
            (
                pool.maximum >= max(1, pool.minimum),
                "pool.maximum must be at least 1 and at least pool.minimum (\(pool.minimum)); it is \(pool.maximum)."
            ),
            (
                pool.streamsPerConnection > 0,
                "pool.streamsPerConnection must be at least 1; it is \(pool.streamsPerConnection)."
            ),
            (pool.growsAfter >= .zero, "pool.growsAfter must not be below 0; it is \(pool.growsAfter)."),
            (pool.idleLimit >= .zero, "pool.idleLimit must not be below 0; it is \(pool.idleLimit)."),
            (pool.pingsAfterIdle > .zero, "pool.pingsAfterIdle must be more than 0; it is \(pool.pingsAfterIdle)."),
            (pool.suspectsAfter > .zero, "pool.suspectsAfter must be more than 0; it is \(pool.suspectsAfter)."),
            (
                pool.answersPingWithin > .zero,
                "pool.answersPingWithin must be more than 0; it is \(pool.answersPingWithin)."
            ),
        ]
        for (holds, sentence) in rules where !holds { throw APNsError(.configurationInvalid, sentence) }
        if let bundleID, bundleID.isEmpty || !NotificationRules.isPrintable(bundleID) {
            throw APNsError(
                .configurationInvalid,
                "bundleID must be printable ASCII without spaces, like com.example.app; it is \"\(bundleID)\".")
        }
        if let (host, port) = proxy?.address, host.isEmpty || !(1...65_535).contains(port) {
            throw APNsError(
                .configurationInvalid,
                "proxy needs a host, and a port from 1 to 65535; it has \"\(host)\" and \(port).")
        }
        try environment.push.check()
        try environment.management.check()
    }

    /// Returns the TLS configuration that APNs requires, with the trusted authorities.
    func trust() throws(APNsError) -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.applicationProtocols = ["h2"]
        tls.minimumTLSVersion = .tlsv12
        // A peer that sends without pause does not answer the end of TLS either.
        tls.shutdownTimeout = .seconds(1)
        guard let trustRoots else { return tls }
        do {
            tls.trustRoots = .certificates(try KeyMaterial(trustRoots).tlsCertificates())
            return tls
        } catch {
            throw APNsError(.configurationInvalid, error.sentence("trustRoots", need: "certificates in PEM form"))
        }
    }
}
