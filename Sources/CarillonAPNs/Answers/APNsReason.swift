/// The reason of a rejection, as APNs names it.
///
/// The set is open: a reason that this version has no name for keeps its text.
public struct APNsReason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The text of `reason` in the response.
    public let rawValue: String
    /// The text of `reason` in the response.
    public var description: String { rawValue }

    /// Makes a reason from its text.
    public init(rawValue: String) { self.rawValue = rawValue }

    private init(_ rawValue: String) { self.rawValue = rawValue }
}

extension APNsReason {
    // Status 400
    /// The collapse ID is too long (more than 64 bytes).
    public static let badCollapseID = APNsReason("BadCollapseId")
    /// The token is malformed, or belongs to the other environment.
    public static let badDeviceToken = APNsReason("BadDeviceToken")
    /// The expiration is not a time.
    public static let badExpirationDate = APNsReason("BadExpirationDate")
    /// The notification's ID is not a UUID.
    public static let badMessageID = APNsReason("BadMessageId")
    /// The priority is not allowed.
    public static let badPriority = APNsReason("BadPriority")
    /// The APNs topic is invalid.
    public static let badTopic = APNsReason("BadTopic")
    /// The token does not belong to the APNs topic.
    public static let deviceTokenNotForTopic = APNsReason("DeviceTokenNotForTopic")
    /// A header occurs twice.
    public static let duplicateHeaders = APNsReason("DuplicateHeaders")
    /// The connection was idle for too long.
    public static let idleTimeout = APNsReason("IdleTimeout")
    /// The push type is not allowed.
    public static let invalidPushType = APNsReason("InvalidPushType")
    /// The path has no token.
    public static let missingDeviceToken = APNsReason("MissingDeviceToken")
    /// The APNs topic is missing.
    public static let missingTopic = APNsReason("MissingTopic")
    /// There is no payload.
    public static let payloadEmpty = APNsReason("PayloadEmpty")
    /// The push credentials do not allow this APNs topic.
    public static let topicDisallowed = APNsReason("TopicDisallowed")

    // Status 400 of broadcasts and channels
    /// Broadcasts are not enabled for the app.
    public static let featureNotEnabled = APNsReason("FeatureNotEnabled")
    /// The channel's ID is missing.
    public static let missingChannelID = APNsReason("MissingChannelId")
    /// The channel's ID is malformed.
    public static let badChannelID = APNsReason("BadChannelId")
    /// There is no channel with this ID.
    public static let channelNotRegistered = APNsReason("ChannelNotRegistered")
    /// A parameter of the request is invalid.
    public static let badRequestParams = APNsReason("BadRequestParams")
    /// The body of the request is invalid.
    public static let badRequestPayload = APNsReason("BadRequestPayload")
    /// The push type is missing.
    public static let missingPushType = APNsReason("MissingPushType")
    /// The app has reached its limit of channels.
    public static let cannotCreateChannelConfig = APNsReason("CannotCreateChannelConfig")
    /// The storage policy is missing.
    public static let missingChannelQueueSize = APNsReason("MissingChannelQueueSize")

    // Status 403
    /// The certificate is invalid.
    public static let badCertificate = APNsReason("BadCertificate")
    /// The certificate is for the other environment.
    public static let badCertificateEnvironment = APNsReason("BadCertificateEnvironment")
    /// The provider token has expired.
    public static let expiredProviderToken = APNsReason("ExpiredProviderToken")
    /// The action is not allowed.
    public static let forbidden = APNsReason("Forbidden")
    /// The provider token is not valid, or its signature cannot be verified.
    public static let invalidProviderToken = APNsReason("InvalidProviderToken")
    /// There is no certificate and no provider token.
    public static let missingProviderToken = APNsReason("MissingProviderToken")
    /// The signing key is not related to the key of the connection's first provider token.
    public static let unrelatedKeyIDInToken = APNsReason("UnrelatedKeyIdInToken")
    /// The signing key belongs to the other environment.
    public static let badEnvironmentKeyIDInToken = APNsReason("BadEnvironmentKeyIdInToken")
    /// A different spelling of ``badEnvironmentKeyIDInToken``, which the live service sends.
    public static let badEnvironmentKeyInToken = APNsReason("BadEnvironmentKeyInToken")
    /// The APNs topic is not the topic of the channel.
    public static let topicMismatch = APNsReason("TopicMismatch")

    // Status 404 and higher
    /// The path is invalid.
    public static let badPath = APNsReason("BadPath")
    /// The method is not POST.
    public static let methodNotAllowed = APNsReason("MethodNotAllowed")
    /// The device token has expired.
    public static let expiredToken = APNsReason("ExpiredToken")
    /// The device token is not active for the APNs topic, for instance because the app was removed from the device.
    public static let unregistered = APNsReason("Unregistered")
    /// The payload is larger than the limit.
    public static let payloadTooLarge = APNsReason("PayloadTooLarge")
    /// The provider token was renewed too often.
    public static let tooManyProviderTokenUpdates = APNsReason("TooManyProviderTokenUpdates")
    /// Too many pushes were sent to one device.
    public static let tooManyRequests = APNsReason("TooManyRequests")
    /// APNs has an internal fault.
    public static let internalServerError = APNsReason("InternalServerError")
    /// APNs is unavailable.
    public static let serviceUnavailable = APNsReason("ServiceUnavailable")
    /// The server of APNs is shutting down.
    public static let shutdown = APNsReason("Shutdown")

    /// All reasons that this version has names for.
    public static let known: [APNsReason] = [
        badCollapseID, badDeviceToken, badExpirationDate, badMessageID, badPriority, badTopic, deviceTokenNotForTopic,
        duplicateHeaders, idleTimeout, invalidPushType, missingDeviceToken, missingTopic, payloadEmpty, topicDisallowed,
        featureNotEnabled, missingChannelID, badChannelID, channelNotRegistered, badRequestParams, badRequestPayload,
        missingPushType, cannotCreateChannelConfig, missingChannelQueueSize, badCertificate, badCertificateEnvironment,
        expiredProviderToken, forbidden, invalidProviderToken, missingProviderToken, unrelatedKeyIDInToken,
        badEnvironmentKeyIDInToken, badEnvironmentKeyInToken, topicMismatch, badPath, methodNotAllowed, expiredToken,
        unregistered, payloadTooLarge, tooManyProviderTokenUpdates, tooManyRequests, internalServerError,
        serviceUnavailable, shutdown,
    ]
}
