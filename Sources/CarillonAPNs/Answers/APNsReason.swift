/// Why the service rejected a request, in its own words.
///
/// The set is open: a reason that this version has no name for is kept as it came.
public struct APNsReason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The text of the answer's `reason`.
    public let rawValue: String
    /// The text of the answer's `reason`.
    public var description: String { rawValue }

    /// A reason by its text.
    public init(rawValue: String) { self.rawValue = rawValue }

    private init(_ rawValue: String) { self.rawValue = rawValue }
}

extension APNsReason {
    // Status 400
    /// The collapse ID is too long.
    public static let badCollapseID = APNsReason("BadCollapseId")
    /// The token is malformed, or of the other environment.
    public static let badDeviceToken = APNsReason("BadDeviceToken")
    /// The expiration is not a time.
    public static let badExpirationDate = APNsReason("BadExpirationDate")
    /// The notification's ID is not a UUID.
    public static let badMessageID = APNsReason("BadMessageId")
    /// The priority is not allowed.
    public static let badPriority = APNsReason("BadPriority")
    /// The topic is invalid.
    public static let badTopic = APNsReason("BadTopic")
    /// The token belongs to another app.
    public static let deviceTokenNotForTopic = APNsReason("DeviceTokenNotForTopic")
    /// A header came twice.
    public static let duplicateHeaders = APNsReason("DuplicateHeaders")
    /// The connection was idle for too long.
    public static let idleTimeout = APNsReason("IdleTimeout")
    /// The push type is not allowed.
    public static let invalidPushType = APNsReason("InvalidPushType")
    /// The path has no token.
    public static let missingDeviceToken = APNsReason("MissingDeviceToken")
    /// The topic is missing.
    public static let missingTopic = APNsReason("MissingTopic")
    /// There is no payload.
    public static let payloadEmpty = APNsReason("PayloadEmpty")
    /// The credentials may not push to this topic.
    public static let topicDisallowed = APNsReason("TopicDisallowed")

    // Status 400 of broadcasts and channels
    /// Broadcasts are not switched on for the app.
    public static let featureNotEnabled = APNsReason("FeatureNotEnabled")
    /// The channel's ID is missing.
    public static let missingChannelID = APNsReason("MissingChannelId")
    /// The channel's ID is malformed.
    public static let badChannelID = APNsReason("BadChannelId")
    /// There is no such channel.
    public static let channelNotRegistered = APNsReason("ChannelNotRegistered")
    /// A parameter is wrong.
    public static let badRequestParams = APNsReason("BadRequestParams")
    /// The body is wrong.
    public static let badRequestPayload = APNsReason("BadRequestPayload")
    /// The push type is missing.
    public static let missingPushType = APNsReason("MissingPushType")
    /// The app has as many channels as it may have.
    public static let cannotCreateChannelConfig = APNsReason("CannotCreateChannelConfig")
    /// The storage policy is missing.
    public static let missingChannelQueueSize = APNsReason("MissingChannelQueueSize")

    // Status 403
    /// The certificate is invalid.
    public static let badCertificate = APNsReason("BadCertificate")
    /// The certificate is for the other environment.
    public static let badCertificateEnvironment = APNsReason("BadCertificateEnvironment")
    /// The provider token is too old.
    public static let expiredProviderToken = APNsReason("ExpiredProviderToken")
    /// The action is not allowed.
    public static let forbidden = APNsReason("Forbidden")
    /// The provider token is not valid, or its signature cannot be verified.
    public static let invalidProviderToken = APNsReason("InvalidProviderToken")
    /// There is no certificate and no provider token.
    public static let missingProviderToken = APNsReason("MissingProviderToken")
    /// The key is not related to the one that this connection was opened with.
    public static let unrelatedKeyIDInToken = APNsReason("UnrelatedKeyIdInToken")
    /// The key is for the other environment.
    public static let badEnvironmentKeyIDInToken = APNsReason("BadEnvironmentKeyIdInToken")
    /// The live service's other spelling of ``badEnvironmentKeyIDInToken``.
    public static let badEnvironmentKeyInToken = APNsReason("BadEnvironmentKeyInToken")
    /// The topic is not the channel's.
    public static let topicMismatch = APNsReason("TopicMismatch")

    // Status 404 and beyond
    /// The path is wrong.
    public static let badPath = APNsReason("BadPath")
    /// The method is not POST.
    public static let methodNotAllowed = APNsReason("MethodNotAllowed")
    /// The token expired.
    public static let expiredToken = APNsReason("ExpiredToken")
    /// The app is no longer on the device, or the token is not for it any more.
    public static let unregistered = APNsReason("Unregistered")
    /// The payload is larger than the limit.
    public static let payloadTooLarge = APNsReason("PayloadTooLarge")
    /// The provider token is renewed too often.
    public static let tooManyProviderTokenUpdates = APNsReason("TooManyProviderTokenUpdates")
    /// Too many pushes to one device.
    public static let tooManyRequests = APNsReason("TooManyRequests")
    /// The service has a fault.
    public static let internalServerError = APNsReason("InternalServerError")
    /// The service is not available.
    public static let serviceUnavailable = APNsReason("ServiceUnavailable")
    /// The server is shutting down.
    public static let shutdown = APNsReason("Shutdown")

    /// The reasons that this version has names for.
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
