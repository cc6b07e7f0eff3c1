extension APNsRejection {
    /// A sentence for a person about how to correct the fault.
    public var advice: String {
        if let reason, let known = Self.advice[reason] { return known }
        switch kind {
        case .deadToken: return "Forget the token."
        case .fixRequest: return "Correct the request; the same one will be refused again."
        case .fixCredentials: return "Look at the key or certificate, and at what it may send to."
        case .slowDown: return "Send slower, and send this one again later."
        case .tryLater: return "The service has trouble; send again after 15 minutes."
        case .unknown:
            return "This is not an answer of the service; look for a proxy or a firewall on the way, and send again later."
        }
    }

    private static let advice: [APNsReason: String] = [
        .badCollapseID: "Shorten the collapse ID to 64 bytes.",
        .badDeviceToken:
            "Use the token as the app got it, in its own environment: sandbox for development builds, production for all others.",
        .badExpirationDate: "Give the expiration as seconds since 1970.",
        .badMessageID: "Give the notification a UUID for an ID, or none.",
        .badPriority: "Use priority 10, 5 or 1, and 5 for background pushes.",
        .badTopic: "Check the bundle ID, and that the topic's suffix belongs to the push type.",
        .deviceTokenNotForTopic: "The token belongs to another app; check the bundle ID.",
        .duplicateHeaders: "Something between here and the service repeats headers.",
        .idleTimeout: "The connection was idle for too long; send again.",
        .invalidPushType: "The service does not know this push type, or the payload does not fit it.",
        .missingDeviceToken: "Give a device token.",
        .missingTopic: "Set the bundle ID, or a topic.",
        .payloadEmpty: "Give a payload.",
        .topicDisallowed: "The key or certificate may not send to this app; check team, bundle ID and the key's topics.",
        .featureNotEnabled: "Switch broadcasts on for the app in Apple's developer portal.",
        .missingChannelID: "Give the channel's ID.",
        .badChannelID: "Use the channel's ID as the service gave it.",
        .channelNotRegistered: "There is no such channel in this environment; create it, or take another.",
        .badRequestParams: "A storage policy is 0 or 1, and a request's ID is a UUID.",
        .badRequestPayload: "Give a body of JSON as the service documents it.",
        .missingPushType: "Give the push type.",
        .cannotCreateChannelConfig: "The app has as many channels as it may have; delete some.",
        .missingChannelQueueSize: "Give the channel's storage policy.",
        .badCertificate: "Use a push certificate of Apple's that is valid today.",
        .badCertificateEnvironment: "The certificate is for the other environment.",
        .expiredProviderToken: "Set this machine's clock: by the service's, the token was signed more than an hour ago.",
        .forbidden: "The key or certificate may not do this.",
        .invalidProviderToken:
            "Check that key, key ID and team ID belong together, that the key is not revoked, and that the clock is right.",
        .missingProviderToken: "Send with a key or a certificate.",
        .unrelatedKeyIDInToken: "Use one client for each key: the connection was opened with another.",
        .badEnvironmentKeyIDInToken: "The key is for the other environment.",
        .badEnvironmentKeyInToken: "The key is for the other environment.",
        .topicMismatch: "The channel belongs to another app.",
        .badPath: "Check the host: the service does not know the path.",
        .methodNotAllowed: "Check the host: the service does not know the method.",
        .expiredToken: "Forget the token.",
        .unregistered: "Forget the token, unless the app registered it again since.",
        .payloadTooLarge: "Make the payload smaller.",
        .tooManyProviderTokenUpdates:
            "Sign provider tokens at most every 20 minutes: share one client, and do not restart it for each push.",
        .tooManyRequests: "Too many pushes to one device; send it less, and later.",
        .internalServerError: "The service has trouble; send again after 15 minutes.",
        .serviceUnavailable: "The service has trouble; send again after 15 minutes.",
        .shutdown: "The service's host is restarting; send again after 15 minutes.",
    ]
}
