import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

#if canImport(Network)
    import Network
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The reason why a connection to a server fails, in words for people. It does not contain texts of the underlying libraries.
package struct ConnectionReason: Hashable, Sendable {
    /// A clause without a full stop: "name not found".
    package let summary: String
    /// Advice for the operator or the developer, in sentences; nil if there is no advice for this reason.
    package let advice: String?

    package init(_ summary: String, advice: String? = nil) {
        self.summary = summary
        self.advice = advice
    }

    /// Makes the reason for an error of a connection, an HTTP request or a WebSocket handshake.
    package init(_ error: any Error) { self = Self.known(error) ?? .failed }

    /// Makes the reason for a system error number.
    package init(errno code: CInt) {
        switch code {
        case ECONNREFUSED:
            self.init("connection refused", advice: "Check that the server is running and that the port is right.")
        case ETIMEDOUT: self = .noAnswer
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN:
            self.init("no route to the host", advice: "Check that this machine is on the network.")
        case ECONNRESET, EPIPE, ECONNABORTED: self = .closed
        case ENOENT: self.init("no socket is at that path", advice: "Check that the server is running.")
        case EACCES, EPERM: self.init("permission denied")
        case EMFILE, ENFILE: self.init("too many open files")
        case EADDRNOTAVAIL: self.init("no local address is available")
        default: self.init("connection failed (error \(code) of the system)")
        }
    }

    package static let noAnswer = ConnectionReason(
        "no answer in time", advice: "Check for a firewall between this machine and the server.")
    package static let closed = ConnectionReason(
        "the connection was closed before the answer", advice: "Check the port, and the log of the server or its proxy.")
    package static let cancelled = ConnectionReason("cancelled")
    package static let answerTooLarge = ConnectionReason("the answer is too large")

    /// Returns the reason for a response that another program sent in the server's place.
    static func foreign(status: Int) -> ConnectionReason {
        ConnectionReason(
            "another program answered with status \(status)",
            advice: "Check the address, and whether a proxy or a login page is between this machine and the server.")
    }

    private static let nameNotFound = ConnectionReason(
        "name not found", advice: "Check the host name, and whether names can be resolved on this machine.")
    private static let notTLS = ConnectionReason(
        "the server does not speak TLS on this port",
        advice: "Check the port, and whether the address must begin with http: or ws:.")
    private static let failed = ConnectionReason(
        "connection failed", advice: "Check the address, and the log of the server or its proxy.")

    /// Returns the reason for an error of the libraries that open connections; nil for another error.
    package static func known(_ error: any Error) -> ConnectionReason? {
        switch error {
        case let failure as ConnectionFailure: failure.reason
        case let fault as TransportFault: of(fault)
        case let error as NIOConnectionError: of(error)
        case is SocketAddressError, is SocketAddressError.UnknownHost: nameNotFound
        case let error as IOError: ConnectionReason(errno: error.errnoCode)
        case let error as ChannelError: of(error)
        case let error as NIOSSLExtraError: of(error)
        case is NIOSSLError, is BoringSSLError, is NIOSSLCloseTimedOutError: ofTLS(String(describing: error))
        case is NIOTooManyBytesError: answerTooLarge
        case let error as NIOHTTPObjectAggregatorError: error == .frameTooLong ? answerTooLarge : closed
        case HTTPParserError.invalidEOFState: closed
        case is HTTPParserError:
            ConnectionReason(
                "the answer is not HTTP", advice: "Check the port, and whether the address must begin with https:.")
        case is CancellationError: cancelled
        default: ofNetworkFramework(error)
        }
    }

    private static func of(_ fault: TransportFault) -> ConnectionReason {
        switch fault.kind {
        case .timeOut: noAnswer
        case .refusedUpgrade:
            ConnectionReason(
                (fault.cause as? UpgradeRefusal).map {
                    "the server answered the WebSocket handshake with status \($0.status)"
                }
                    ?? "the server did not accept a WebSocket",
                advice: "Check that the address is that of a Carillon server, and that proxies pass WebSocket upgrades on.")
        case .unreachable, .reachedServer: fault.cause.map { ConnectionReason($0) } ?? failed
        }
    }

    /// If the host has several addresses, the first failure with a known reason is used.
    private static func of(_ error: NIOConnectionError) -> ConnectionReason {
        guard !error.connectionErrors.isEmpty else { return nameNotFound }
        return error.connectionErrors.lazy.compactMap { known($0.error) }.first ?? failed
    }

    private static func of(_ error: ChannelError) -> ConnectionReason {
        switch error {
        case .connectTimeout: noAnswer
        case .inputClosed, .outputClosed, .eof, .ioOnClosedChannel, .alreadyClosed: closed
        default: failed
        }
    }

    private static func of(_ error: NIOSSLExtraError) -> ConnectionReason {
        switch error {
        case .failedToValidateHostname, .serverHostnameImpossibleToMatch:
            ConnectionReason(
                "the certificate is for another name", advice: "Use a host name that the server's certificate has.")
        default: ConnectionReason("TLS failed", advice: "Check the host name and the port.")
        }
    }

    /// - Parameter detail: The message of the TLS library, which contains the names of its source files.
    private static func ofTLS(_ detail: String) -> ConnectionReason {
        if detail.contains("CERTIFICATE_VERIFY_FAILED") {
            return ConnectionReason(
                "the certificate is not trusted, or not valid now",
                advice: "If its authority is your own, name its file: --ca FILE, or trustRootsPath in Swift.")
        }
        if detail.contains("WRONG_VERSION_NUMBER") || detail.contains("HTTP_REQUEST") { return notTLS }
        if let alert = detail.firstMatch(of: /(?:SSLV3|TLSV1)_(?:ALERT_)?([A-Z_]+)/) {
            let name = alert.output.1.lowercased().replacing("_", with: " ")
            return ConnectionReason(
                "the server ended TLS with the alert \"\(name)\"", advice: "Check the host name and the port.")
        }
        if detail.contains("eofDuringHandshake") || detail.contains("uncleanShutdown") { return closed }
        return ConnectionReason("TLS failed", advice: "Check the host name and the port.")
    }

    #if canImport(Network)
        private static func ofNetworkFramework(_ error: any Error) -> ConnectionReason? {
            switch error {
            case NWError.posix(let code): ConnectionReason(errno: code.rawValue)
            case NWError.dns: nameNotFound
            default: nil
            }
        }
    #else
        private static func ofNetworkFramework(_ error: any Error) -> ConnectionReason? { nil }
    #endif
}

/// The response to a WebSocket handshake was not an upgrade.
struct UpgradeRefusal: Error, Hashable {
    let status: Int
}
