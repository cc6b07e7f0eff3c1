import CarillonBasics
public import Logging
public import Metrics
import NIOCore
import NIOSSL

extension APNsClient {
    /// Everything that can be set. All but the credentials has a value that is safe without tuning.
    public struct Configuration: Sendable {
        /// Who sends.
        public var credentials: APNsCredentials
        /// The app, from which topics are made; a notification can name another.
        public var bundleID: String?
        /// Where pushes go whose recipient names no environment.
        public var environment: APNsEnvironment = .production
        /// How long a push may take, from the call until the answer, without the delays of the retry policy.
        public var timeout: Duration = .seconds(30)
        /// How long opening a connection may take.
        public var connectTimeout: Duration = .seconds(10)
        /// How many pushes may be under way or wait, without those of batches, which bound themselves. A push beyond it
        /// is refused with ``APNsError/Code/queueFull``.
        public var queueLimit = 50_000
        /// How many pushes of one batch are under way at once.
        public var batchWindow = 2000
        /// When a push is sent again.
        public var retryPolicy: APNsRetryPolicy = .standard
        /// How many connections there are and how they are kept.
        public var pool = Pool()
        /// A proxy that connects onward to the service.
        public var proxy: Proxy?
        /// PEM text of the authorities that are trusted instead of the system's, read as
        /// ``APNsCertificate/init(pem:privateKeyPEM:passphrase:)`` reads it.
        public var trustRoots: String?
        /// Whether the provider token goes into the connection's header table, which saves 200 bytes for each push.
        /// Apple's pages contradict each other; the live service takes both.
        public var indexesAuthorization = true
        /// Where the client logs. No token, key or payload is ever logged.
        public var logger = Logger(label: "carillon.apns")
        /// Where the client counts; nil for the process's own (`MetricsSystem`).
        public var metrics: (any MetricsFactory)?
        /// Called for each push that is over, on the client's own thread: it must return at once.
        public var trace: (@Sendable (Trace) -> Void)?
        /// Where the time comes from.
        public var timeSource: APNsTimeSource = .system
        /// Where the stream numbers of a connection begin, so that a test comes to their end.
        var firstStream: UInt32 = 1
        /// How many connections that went are replaced a second, so that a test can lose many.
        var replacedPerSecond: Double?

        /// Begins with what must be known.
        public init(
            credentials: APNsCredentials, bundleID: String? = nil, environment: APNsEnvironment = .production
        ) {
            self.credentials = credentials
            self.bundleID = bundleID
            self.environment = environment
        }
    }

    /// How many connections to one host there are and how they are kept.
    public struct Pool: Sendable {
        /// As many are kept, once the first push was sent or the client warmed up.
        public var minimum = 1
        /// There are never more that take pushes; one that was replaced still waits for its answers.
        public var maximum = 8
        /// The most pushes under way on one connection, whatever the service allows.
        public var streamsPerConnection = 1000
        /// A connection is added when pushes waited for so long because all are full.
        public var growsAfter: Duration = .milliseconds(50)
        /// A connection above the minimum is closed when it had nothing to do for so long.
        public var idleLimit: Duration = .seconds(300)
        /// A ping goes out after so long without a word on an idle connection.
        public var pingsAfterIdle: Duration = .seconds(600)
        /// A ping goes out when an answer is awaited and nothing came for so long.
        public var suspectsAfter: Duration = .seconds(5)
        /// A connection is replaced when a ping is not answered within so long.
        public var answersPingWithin: Duration = .seconds(5)

        /// The values that are safe without tuning.
        public init() {}
    }

    /// A proxy, which resolves the service's name and connects to it; what it passes on is encrypted for the service.
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

    /// What is told of one push that is over.
    public struct Trace: Sendable {
        /// The host.
        public let environment: String
        /// From the call until the answer.
        public let duration: Duration
        /// `accepted`, the service's reason, or the name of an ``APNsError/Code``.
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

    /// TLS as the service wants it, with whom we believe.
    func trust() throws(APNsError) -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.applicationProtocols = ["h2"]
        tls.minimumTLSVersion = .tlsv12
        // Who floods does not say goodbye either.
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
