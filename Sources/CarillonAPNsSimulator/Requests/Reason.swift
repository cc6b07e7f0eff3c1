extension APNsSimulator {
    /// What is wrong, in the words of APNs. The raw value is what stands in the body of the answer.
    public enum Reason: String, Hashable, Sendable, CaseIterable, Codable {
        /// The collapse identifier is longer than 64 bytes.
        case badCollapseID = "BadCollapseId"
        /// The device token is not one of this environment.
        case badDeviceToken = "BadDeviceToken"
        /// The expiration is not a number of seconds, or a channel that stores nothing was given one.
        case badExpirationDate = "BadExpirationDate"
        /// The `apns-id` is not a UUID.
        case badMessageID = "BadMessageId"
        /// The priority is not one that the push type may have.
        case badPriority = "BadPriority"
        /// The topic is malformed, or is not one of the push type.
        case badTopic = "BadTopic"
        /// The device token belongs to another topic.
        case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
        /// A header came twice.
        case duplicateHeaders = "DuplicateHeaders"
        /// The connection was idle for too long.
        case idleTimeout = "IdleTimeout"
        /// The push type is unknown, or not one for this path.
        case invalidPushType = "InvalidPushType"
        /// The path ends before the device token.
        case missingDeviceToken = "MissingDeviceToken"
        /// There is no topic, and no certificate with exactly one.
        case missingTopic = "MissingTopic"
        /// There is no body.
        case payloadEmpty = "PayloadEmpty"
        /// The credentials are not for this topic.
        case topicDisallowed = "TopicDisallowed"
        /// The app has no broadcast capability.
        case featureNotEnabled = "FeatureNotEnabled"
        /// There is no `apns-channel-id`.
        case missingChannelID = "MissingChannelId"
        /// The channel identifier is not base64.
        case badChannelID = "BadChannelId"
        /// There is no such channel in this environment.
        case channelNotRegistered = "ChannelNotRegistered"
        /// A parameter has a value that it cannot have.
        case badRequestParams = "BadRequestParams"
        /// The body is not what the path asks for.
        case badRequestPayload = "BadRequestPayload"
        /// There is no push type.
        case missingPushType = "MissingPushType"
        /// The app has as many channels as it may have.
        case cannotCreateChannelConfig = "CannotCreateChannelConfig"
        /// There is no message storage policy.
        case missingChannelQueueSize = "MissingChannelQueueSize"
        /// The client certificate is not a valid push certificate.
        case badCertificate = "BadCertificate"
        /// The client certificate is for the other environment.
        case badCertificateEnvironment = "BadCertificateEnvironment"
        /// The provider token was issued more than an hour ago.
        case expiredProviderToken = "ExpiredProviderToken"
        /// The credentials do not allow this.
        case forbidden = "Forbidden"
        /// The provider token is malformed, of an unknown key, or wrongly signed.
        case invalidProviderToken = "InvalidProviderToken"
        /// There is neither a provider token nor a client certificate.
        case missingProviderToken = "MissingProviderToken"
        /// The connection is bound to a key that has nothing to do with this one.
        case unrelatedKeyIDInToken = "UnrelatedKeyIdInToken"
        /// The key is for the other environment.
        case badEnvironmentKeyIDInToken = "BadEnvironmentKeyIdInToken"
        /// The bundle identifier in the path is not one of the credentials or of the topic.
        case topicMismatch = "TopicMismatch"
        /// There is nothing at this path.
        case badPath = "BadPath"
        /// The path is not for this method.
        case methodNotAllowed = "MethodNotAllowed"
        /// The device token has expired.
        case expiredToken = "ExpiredToken"
        /// The device token is not active for the topic any more.
        case unregistered = "Unregistered"
        /// The body is larger than the push type allows.
        case payloadTooLarge = "PayloadTooLarge"
        /// The provider token changed within 20 minutes of the first push with the one before on the connection.
        case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
        /// There were too many requests for one device.
        case tooManyRequests = "TooManyRequests"
        /// The service failed. Only a fault provokes it.
        case internalServerError = "InternalServerError"
        /// The service is not available. Only a fault provokes it.
        case serviceUnavailable = "ServiceUnavailable"
        /// The service is stopping.
        case shutdown = "Shutdown"

        /// The status that goes with it.
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

        /// Whether it is neither about the credentials nor trouble of the service.
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
