#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The service's refusal of one request.
public struct APNsRejection: Hashable, Sendable {
    /// What is to be done about a rejection.
    public enum Kind: Hashable, Sendable, CaseIterable {
        /// Forget the token: it will not come alive again. Where tokens of both environments are kept, look at the
        /// environment first when the reason is ``APNsReason/badDeviceToken``: the other one's tokens are bad, too.
        case deadToken
        /// The request is wrong; the same request will be rejected again.
        case fixRequest
        /// The key, the certificate or its rights are wrong.
        case fixCredentials
        /// Too fast; wait and send again.
        case slowDown
        /// The service has trouble; send again later.
        case tryLater
        /// The answer is not the service's, or is one that this version does not know. It says nothing about the token,
        /// the request or the credentials: a proxy or a firewall on the way can have sent it.
        case unknown
    }

    /// The HTTP status.
    public let status: Int
    /// The reason, typed; nil when the answer had none that could be read.
    public let reason: APNsReason?
    /// What the answer's body said when it was not what the service documents; at most 512 bytes.
    public let text: String?
    /// With status 410: since when the token is known to be invalid. A token that the device registered later is valid.
    public let invalidSince: Date?
    /// How long the service asked to wait.
    public let retryAfter: Duration?

    /// Makes a rejection, for instance in the tests of a backend.
    public init(
        status: Int, reason: APNsReason? = nil, text: String? = nil, invalidSince: Date? = nil,
        retryAfter: Duration? = nil
    ) {
        self.status = status
        self.reason = reason
        self.text = text
        self.invalidSince = invalidSince
        self.retryAfter = retryAfter
    }

    /// What is to be done about it.
    ///
    /// Without a reason, only 429 and 5xx have a meaning: the service gives a reason with each of its refusals, so that any
    /// other answer without one is ``Kind/unknown``.
    public var kind: Kind {
        switch reason {
        case .badDeviceToken, .unregistered, .expiredToken: return .deadToken
        case .badCertificate, .badCertificateEnvironment, .expiredProviderToken, .forbidden, .invalidProviderToken,
            .missingProviderToken, .unrelatedKeyIDInToken, .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken,
            .topicDisallowed, .topicMismatch, .featureNotEnabled:
            return .fixCredentials
        case .tooManyRequests, .tooManyProviderTokenUpdates: return .slowDown
        case .internalServerError, .serviceUnavailable, .shutdown, .idleTimeout: return .tryLater
        case .some(let reason) where reason.rawValue == "Service Unavailable": return .tryLater
        default: break
        }
        switch status {
        case 429: return .slowDown
        case 500...599: return .tryLater
        case _ where reason == nil: return .unknown
        case 410: return .deadToken
        case 401, 403: return .fixCredentials
        case 400...499: return .fixRequest
        default: return .unknown
        }
    }
}

extension APNsRejection: CustomStringConvertible {
    /// Status and reason.
    public var description: String {
        "\(status) \(reason?.rawValue ?? text.map { "without a reason: \($0)" } ?? "without a reason")"
    }
}
