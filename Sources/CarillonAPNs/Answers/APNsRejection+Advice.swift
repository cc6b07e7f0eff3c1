extension APNsRejection {
    /// A sentence for a person about how to correct the fault.
    public var advice: String {
        if let reason, let known = Self.advice[reason] { return known }
        switch kind {
        case .deadToken: return "Delete the token."
        case .fixRequest: return "Correct the request; the service will refuse the same request again."
        case .fixCredentials: return "Check the key or certificate, and the topics to which it can send."
        case .slowDown: return "Send more slowly, and send this push again later."
        case .tryLater: return "The service has a problem; send again after 15 minutes."
        case .unknown:
            return "This answer is not from the service; check for a proxy or a firewall in between, and send again later."
        }
    }

    private static let advice: [APNsReason: String] = [
        .badCollapseID: "Shorten the collapse ID to 64 bytes.",
        .badDeviceToken:
            "Use the token unchanged as the app received it, in its own environment: sandbox for development builds, production for all others.",
        .badExpirationDate: "Set the expiration in seconds since 1970.",
        .badMessageID: "Set the notification's ID to a UUID, or leave it out.",
        .badPriority: "Use priority 10, 5 or 1, and 5 for background pushes.",
        .badTopic: "Check the bundle ID, and whether the topic's suffix belongs to the push type.",
        .deviceTokenNotForTopic: "The token belongs to another app; check the bundle ID.",
        .duplicateHeaders: "Check for a proxy in between that repeats headers.",
        .idleTimeout: "The connection was idle for too long; send again.",
        .invalidPushType: "The service does not know this push type, or the payload does not fit it.",
        .missingDeviceToken: "Set a device token.",
        .missingTopic: "Set the bundle ID, or a topic.",
        .payloadEmpty: "Set a payload.",
        .topicDisallowed:
            "The key or certificate is not allowed to send to this app; check the team, the bundle ID and the key's topics.",
        .featureNotEnabled: "Enable broadcasts for the app in Apple's developer portal.",
        .missingChannelID: "Set the channel's ID.",
        .badChannelID: "Use the channel's ID unchanged as the service returned it.",
        .channelNotRegistered: "There is no such channel in this environment; create it, or use another channel.",
        .badRequestParams: "A storage policy must be 0 or 1, and a request's ID must be a UUID.",
        .badRequestPayload: "Send a JSON body in the form that the service documents.",
        .missingPushType: "Set the push type.",
        .cannotCreateChannelConfig: "The app has reached its limit of channels; delete some.",
        .missingChannelQueueSize: "Set the channel's storage policy.",
        .badCertificate: "Use a push certificate of Apple's that is valid today.",
        .badCertificateEnvironment: "The certificate is for the other environment; use a certificate for this one.",
        .expiredProviderToken:
            "Set this machine's clock: by the service's clock, the token was signed more than an hour ago.",
        .forbidden: "The key or certificate is not allowed to do this; use another.",
        .invalidProviderToken:
            "Check that the key, key ID and team ID belong together, that the key is not revoked, and that the clock is right.",
        .missingProviderToken: "Send with a key or a certificate.",
        .unrelatedKeyIDInToken: "Use one client for each key: the connection was opened with another.",
        .badEnvironmentKeyIDInToken: "The key is for the other environment; use a key for this one.",
        .badEnvironmentKeyInToken: "The key is for the other environment; use a key for this one.",
        .topicMismatch: "The channel belongs to another app; use a channel of this app.",
        .badPath: "Check the host: the service does not support the path.",
        .methodNotAllowed: "Check the host: the service does not support the method.",
        .expiredToken: "Delete the token.",
        .unregistered: "Delete the token, unless the app has registered it again since.",
        .payloadTooLarge: "Make the payload smaller.",
        .tooManyProviderTokenUpdates:
            "Sign provider tokens at most every 20 minutes: share one client, and do not restart it for each push.",
        .tooManyRequests: "Send fewer pushes to this device, and later.",
        .internalServerError: "The service has a problem; send again after 15 minutes.",
        .serviceUnavailable: "The service has a problem; send again after 15 minutes.",
        .shutdown: "The service's host is restarting; send again after 15 minutes.",
    ]
}
