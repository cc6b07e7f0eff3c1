extension APNsSimulator {
    /// The reason of a rejection. The raw value is the `reason` in the body of the response.
    public enum Reason: String, Hashable, Sendable, CaseIterable, Codable {
        /// The collapse identifier is longer than 64 bytes.
        case badCollapseID = "BadCollapseId"
        /// The device token does not belong to this environment.
        case badDeviceToken = "BadDeviceToken"
        /// The expiration is not a number of seconds, or is not 0 for a channel that stores nothing.
        case badExpirationDate = "BadExpirationDate"
        /// The `apns-id` is not a UUID.
        case badMessageID = "BadMessageId"
        /// The priority is not valid for the push type.
        case badPriority = "BadPriority"
        /// The APNs topic is malformed, or does not belong to the push type.
        case badTopic = "BadTopic"
        /// The device token belongs to another APNs topic.
        case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
        /// A header occurs twice.
        case duplicateHeaders = "DuplicateHeaders"
        /// The connection was idle for too long.
        case idleTimeout = "IdleTimeout"
        /// The push type is unknown, or not valid for this path.
        case invalidPushType = "InvalidPushType"
        /// The path ends before the device token.
        case missingDeviceToken = "MissingDeviceToken"
        /// The request has no APNs topic, and there is no certificate with exactly one.
        case missingTopic = "MissingTopic"
        /// There is no body.
        case payloadEmpty = "PayloadEmpty"
        /// The credentials are not valid for this APNs topic.
        case topicDisallowed = "TopicDisallowed"
        /// The app has no broadcast capability.
        case featureNotEnabled = "FeatureNotEnabled"
        /// There is no `apns-channel-id`.
        case missingChannelID = "MissingChannelId"
        /// The channel identifier is not base64.
        case badChannelID = "BadChannelId"
        /// There is no such channel in this environment.
        case channelNotRegistered = "ChannelNotRegistered"
        /// A parameter has an invalid value.
        case badRequestParams = "BadRequestParams"
        /// The body is not valid for the path.
        case badRequestPayload = "BadRequestPayload"
        /// There is no push type.
        case missingPushType = "MissingPushType"
        /// The app has reached its limit of channels.
        case cannotCreateChannelConfig = "CannotCreateChannelConfig"
        /// There is no message storage policy.
        case missingChannelQueueSize = "MissingChannelQueueSize"
        /// The client certificate is not a valid push certificate.
        case badCertificate = "BadCertificate"
        /// The client certificate is for the other environment.
        case badCertificateEnvironment = "BadCertificateEnvironment"
        /// The provider token was issued more than an hour ago.
        case expiredProviderToken = "ExpiredProviderToken"
        /// The credentials do not allow the request.
        case forbidden = "Forbidden"
        /// The provider token is malformed, has an unknown key, or has an invalid signature.
        case invalidProviderToken = "InvalidProviderToken"
        /// There is neither a provider token nor a client certificate.
        case missingProviderToken = "MissingProviderToken"
        /// The connection is bound to a key that is unrelated to this one.
        case unrelatedKeyIDInToken = "UnrelatedKeyIdInToken"
        /// The key is for the other environment.
        case badEnvironmentKeyIDInToken = "BadEnvironmentKeyIdInToken"
        /// The bundle identifier in the path does not match the credentials or the APNs topic.
        case topicMismatch = "TopicMismatch"
        /// The path does not exist.
        case badPath = "BadPath"
        /// The method is not valid for the path.
        case methodNotAllowed = "MethodNotAllowed"
        /// The device token has expired.
        case expiredToken = "ExpiredToken"
        /// The device token is no longer active for the APNs topic.
        case unregistered = "Unregistered"
        /// The body is larger than the push type allows.
        case payloadTooLarge = "PayloadTooLarge"
        /// The provider token was changed within 20 minutes of the first push with the previous one on the connection.
        case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
        /// There were too many requests for one device.
        case tooManyRequests = "TooManyRequests"
        /// The service has an internal fault. Only a fault rule causes this reason.
        case internalServerError = "InternalServerError"
        /// The service is unavailable. Only a fault rule causes this reason.
        case serviceUnavailable = "ServiceUnavailable"
        /// The service is stopping.
        case shutdown = "Shutdown"

        /// The HTTP status of the reason.
        public var status: Int {
            switch self {
            case .badCertificate, .badCertificateEnvironment, .expiredProviderToken, .forbidden, .invalidProviderToken,
                .missingProviderToken, .unrelatedKeyIDInToken, .badEnvironmentKeyIDInToken, .topicMismatch:
                403
            case .badPath: 404
            case .methodNotAllowed: 405
            case .expiredToken, .unregistered: 410
            case .payloadTooLarge: 413
            case .tooManyProviderTokenUpdates, .tooManyRequests: 429
            case .internalServerError: 500
            case .serviceUnavailable, .shutdown: 503
            default: 400
            }
        }

        /// Whether the reason is unrelated to the credentials and to faults of the service.
        var showsThatCredentialsAreTaken: Bool {
            switch self {
            case .badCertificate, .badCertificateEnvironment, .expiredProviderToken, .forbidden, .invalidProviderToken,
                .missingProviderToken, .unrelatedKeyIDInToken, .badEnvironmentKeyIDInToken, .topicDisallowed,
                .topicMismatch, .featureNotEnabled, .tooManyProviderTokenUpdates, .internalServerError,
                .serviceUnavailable, .shutdown:
                false
            default: true
            }
        }
    }
}

typealias Reason = APNsSimulator.Reason
