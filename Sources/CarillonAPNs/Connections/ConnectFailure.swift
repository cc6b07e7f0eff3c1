import NIOCore
import NIOExtras
import NIOPosix
import NIOSOCKS
import NIOSSL

/// Explains why a connection to a host failed, and how to correct the fault.
struct ConnectFailure {
    let error: APNsError
    /// Whether another attempt would fail in the same way, so that no push needs to wait for it.
    let isLasting: Bool

    init(_ cause: any Error, to opener: ConnectionOpener) {
        let host = "\(opener.address.host):\(opener.address.port)"
        let (sentence, isLasting) = Self.explain(cause, host, opener)
        error = APNsError(.connectionFailed, sentence, cause: cause is ConnectionFault ? nil : cause)
        self.isLasting = isLasting
    }

    private static func explain(_ cause: any Error, _ host: String, _ opener: ConnectionOpener) -> (String, Bool) {
        switch cause {
        case ConnectFault.notHTTP2:
            return ("\(host) does not support HTTP/2 (ALPN h2); check the host.", true)
        case let fault as ConnectionFault:
            return ("\(host): \(fault.detail)", fault.kind == .notHTTP2)
        case is NIOSSLExtraError:
            return ("The certificate of \(host) is for another name; check the host.", true)
        case let error as NIOConnectionError:
            return (unreachable(error, opener), false)
        case let error as NIOHTTP1ProxyConnectHandler.Error:
            return ("\(target(opener)) does not connect to \(host)\(answer(of: error)).", false)
        case is SOCKSError.NoValidAuthenticationMethod, is SOCKSError.InvalidAuthenticationSelection:
            return ("\(target(opener)) requires a name and a password, which is not supported for SOCKS.", false)
        case is SOCKSError.ConnectionFailed: return ("\(target(opener)) does not connect to \(host).", false)
        case is SOCKSError.InvalidProtocolVersion, is SOCKSError.InvalidReservedByte, is SOCKSError.InvalidAddressType,
            is SOCKSError.UnexpectedRead, is SOCKSError.InvalidClientState:
            return ("\(target(opener)) does not support SOCKS 5; check the proxy.", false)
        case ChannelError.connectTimeout: return (silent(target(opener), opener), false)
        case let error as IOError: return (unreachable(error, target(opener), opener), false)
        default: break
        }
        let detail = String(describing: cause)
        if detail.contains("CERTIFICATE_VERIFY_FAILED") {
            return (
                "The certificate of \(host) is not trusted, or not valid now; set the client's trustRoots to its authority, if it is yours.",
                true
            )
        }
        if isAboutOwnCertificate(cause) {
            return (
                "\(host) rejects the client's certificate, or requires one; check whether it is expired, revoked, or for the other environment.",
                true
            )
        }
        if let alert = alert(in: detail) {
            return (
                "\(host) refused TLS with the alert \"\(alert)\"; check the host and port, and whether it supports TLS 1.2 or newer.",
                alert != "internal error"
            )
        }
        if opener.proxy != nil, cause as? NIOSSLError == .handshakeFailed(.sslError([.eofDuringHandshake])) {
            return ("\(target(opener)) closed the connection and did not connect to \(host).", false)
        }
        if detail.contains("WRONG_VERSION_NUMBER") { return ("\(host) does not support TLS; check the port.", true) }
        if cause is NIOSSLError { return ("TLS with \(host) failed; check whether the port is for TLS.", false) }
        return ("\(host) cannot be reached.", false)
    }

    /// Returns the status of the proxy's response, without its other text, which is not trusted.
    private static func answer(of error: NIOHTTP1ProxyConnectHandler.Error) -> String {
        if error == .proxyAuthenticationRequired() { return ": it requires authorization" }
        let status = String(describing: error).firstMatch(of: /status: (\d{3})/)?.output.1
        return status.map { ": it answered with status \($0)" } ?? ""
    }

    /// Returns a sentence about why an open connection ended.
    static func ending(_ error: any Error) -> String {
        if let alert = alert(in: String(describing: error)) {
            return "The service ended TLS with the alert \"\(alert)\"."
        }
        if error is NIOSSLError || error is NIOSSLCloseTimedOutError { return "TLS failed." }
        guard let error = error as? IOError else { return "The connection broke." }
        switch error.errnoCode {
        case ECONNRESET, EPIPE: return "The service reset the connection."
        case ETIMEDOUT: return "The network did not answer for too long."
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN: return "The network is not available."
        default: return "The connection broke."
        }
    }

    /// Returns the peer's TLS alert (RFC 8446 section 6) from the text of a BoringSSL error.
    private static func alert(in detail: String) -> String? {
        guard let match = detail.firstMatch(of: /(?:SSLV3|TLSV1)_(?:ALERT_)?([A-Z_]+)/) else { return nil }
        return match.output.1.lowercased().replacing("_", with: " ")
    }

    /// Whether the peer ended TLS because of the client's certificate, or because the client has no certificate.
    static func isAboutOwnCertificate(_ error: any Error) -> Bool {
        let detail = String(describing: error)
        return detail.contains("ALERT") && (detail.contains("CERTIFICATE") || detail.contains("UNKNOWN_CA"))
    }

    private static func target(_ opener: ConnectionOpener) -> String {
        opener.proxy.map { "The proxy \($0.address.host):\($0.address.port)" }
            ?? "\(opener.address.host):\(opener.address.port)"
    }

    private static func unreachable(_ error: NIOConnectionError, _ opener: ConnectionOpener) -> String {
        guard let first = error.connectionErrors.first?.error else {
            return "No address was found for \(error.host); check the name, and the name resolution of this machine."
        }
        if case .connectTimeout? = first as? ChannelError { return silent(target(opener), opener) }
        guard let error = first as? IOError else { return "\(target(opener)) cannot be reached." }
        return unreachable(error, target(opener), opener)
    }

    private static func unreachable(_ error: IOError, _ target: String, _ opener: ConnectionOpener) -> String {
        switch error.errnoCode {
        case ECONNREFUSED: "\(target) refuses connections; check whether a service listens there."
        case ETIMEDOUT: silent(target, opener)
        case ENETUNREACH, EHOSTUNREACH: "There is no route to \(target); check the network of this machine."
        default: "\(target) cannot be reached."
        }
    }

    private static func silent(_ target: String, _ opener: ConnectionOpener) -> String {
        let hint =
            opener.proxy == nil && opener.address.port == 443
            ? " The service can also be reached on port 2197 (alternativePort)." : ""
        return "\(target) did not answer within \(opener.timeout); check for a firewall in between.\(hint)"
    }
}
