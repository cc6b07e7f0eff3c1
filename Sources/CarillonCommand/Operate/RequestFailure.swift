import AsyncHTTPClient
import CarillonClient

/// Why a request to a server has no answer, for people.
enum RequestFailure {
    /// Returns nil for an error of something else than a connection or a request.
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

    /// Returns the reason and what to do about it, without a full stop.
    static func sentence(_ error: any Error) -> String {
        let reason = reason(error) ?? ConnectionReason(error)
        guard let advice = reason.advice else { return reason.summary }
        return "\(reason.summary). \(advice.hasSuffix(".") ? String(advice.dropLast()) : advice)"
    }
}
