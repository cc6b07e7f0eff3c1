import AsyncHTTPClient
import CarillonClient

/// Describes why a request received no answer.
enum RequestFailure {
    /// Returns nil for an error that concerns neither a connection nor a request.
    static func reason(_ error: any Error) -> ConnectionReason? {
        guard let error = error as? HTTPClientError else { return ConnectionReason.known(error) }
        switch error {
        case .connectTimeout, .readTimeout, .writeTimeout, .deadlineExceeded, .getConnectionFromPoolTimeout,
            .tlsHandshakeTimeout:
            return .noAnswer
        case .remoteConnectionClosed, .uncleanShutdown: return .closed
        case .invalidURL, .emptyHost, .emptyScheme, .missingSocketPath:
            return ConnectionReason("the address is not a valid URL")
        case .cancelled, .requestStreamCancelled: return .cancelled
        default:
            return ConnectionReason("\(error.shortDescription.prefix(1).lowercased())\(error.shortDescription.dropFirst())")
        }
    }

    /// Returns the reason and a remedy, without a full stop.
    static func sentence(_ error: any Error) -> String {
        let reason = reason(error) ?? ConnectionReason(error)
        guard let advice = reason.advice else { return reason.summary }
        return "\(reason.summary). \(advice.hasSuffix(".") ? String(advice.dropLast()) : advice)"
    }
}
