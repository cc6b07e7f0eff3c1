#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The rejection of one request by APNs.
public struct APNsRejection: Hashable, Sendable {
    /// The reaction that a rejection requires.
    public enum Kind: Hashable, Sendable, CaseIterable {
        /// Remove the token from your store: it will not become valid again. If you store tokens of both environments, check
        /// the environment first when the reason is ``APNsReason/badDeviceToken``: a token of the other environment has this
        /// reason, too.
        case deadToken
        /// The request is wrong; the same request will be rejected again.
        case fixRequest
        /// The key or certificate is invalid, or does not allow the request.
        case fixCredentials
        /// Too many requests were sent. Wait, then send again.
        case slowDown
        /// APNs has a fault. Send again later.
        case tryLater
        /// The response does not come from APNs, or this version does not know its reason. A proxy or a firewall may have
        /// sent it. The response does not show a fault of the token, the request or the push credentials.
        case unknown
    }

    /// The HTTP status.
    public let status: Int
    /// The reason; nil if the response contains no readable reason.
    public let reason: APNsReason?
    /// The body of the response if it does not have the documented form; at most 512 bytes.
    public let text: String?
    /// With status 410, the time since which the token is known to be invalid. A token that the device registered after this
    /// time is valid.
    public let invalidSince: Date?
    /// The time to wait; nil if the response contains no readable time to wait.
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

    /// The reaction that the rejection requires.
    ///
    /// Without a reason, only 429 and 5xx have a meaning. APNs sends a reason with each rejection, so any other response
    /// without a reason is ``Kind/unknown``.
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
    /// The status and the reason.
    public var description: String {
        "\(status) \(reason?.rawValue ?? text.map { "without a reason: \($0)" } ?? "without a reason")"
    }
}
