import CarillonAPNs

/// What to do about a refusal, in a sentence.
enum Advice {
    static func of(_ rejection: APNsRejection) -> String {
        rejection.reason.flatMap { table[$0] } ?? of(rejection.kind)
    }

    private static func of(_ kind: APNsRejection.Kind) -> String {
        switch kind {
        case .deadToken: "Forget the token."
        case .fixRequest: "The same notification will be refused again; look at what is sent."
        case .fixCredentials: "Look at the key or certificate, and at what it is for."
        case .slowDown: "Too fast; wait, and send slower."
        case .tryLater: "The service has trouble; try again in 15 minutes."
        case .unknown: "This answer is not one of Apple's; is it the right host?"
        }
    }

    private static let table: [APNsReason: String] = [
        .badDeviceToken: "No such token here: it is mistyped, or belongs to the other of --sandbox and --production.",
        .deviceTokenNotForTopic: "The token is another app's; look at --topic.",
        .unregistered: "The app is gone from the device, or has a new token; forget this one.",
        .expiredToken: "The token expired; forget it.",
        .badCollapseID: "--collapse-id has at most 64 bytes.",
        .badExpirationDate: "--expires is not a time.",
        .badPriority: "The push type does not allow this --priority.",
        .badTopic: "The topic does not fit the push type; give the bundle ID alone with --topic.",
        .missingTopic: "Say the app with --topic.",
        .invalidPushType: "The service does not know this --push-type.",
        .payloadEmpty: "There is nothing in the payload.",
        .payloadTooLarge: "Send less: 4096 bytes, or 5120 for voip and broadcasts.",
        .topicDisallowed: "The key or certificate is not for this app; look at --topic and at the team.",
        .featureNotEnabled: "Switch broadcasts on for the app in Apple's developer portal.",
        .badChannelID: "A channel's ID is as `carillon apns channels create` printed it.",
        .channelNotRegistered: "There is no such channel here; see `carillon apns channels list`.",
        .cannotCreateChannelConfig: "The app has as many channels as it may have; delete some.",
        .badCertificate: "The service does not take this certificate; make a new one in Apple's developer portal.",
        .badCertificateEnvironment: "The certificate is for the other of --sandbox and --production.",
        .expiredProviderToken: "The signed token counts as expired; is this machine's clock right?",
        .forbidden: "The credentials may not do this.",
        .invalidProviderToken:
            "The service does not know the key: look at --key-id and --team-id, whether the key was revoked, and at the clock.",
        .missingProviderToken: "Say who sends, with --key or --cert.",
        .unrelatedKeyIDInToken: "The key is not related to the one that was used before.",
        .badEnvironmentKeyIDInToken: "The key is for the other of --sandbox and --production.",
        .badEnvironmentKeyInToken: "The key is for the other of --sandbox and --production.",
        .badPath: "This address is for something else; the channels of an --endpoint may need --manage URL.",
        .topicMismatch: "The key is not for this app; look at --topic.",
        .tooManyProviderTokenUpdates: "The key signed too often; wait 20 minutes.",
        .tooManyRequests: "Too many for one device; wait.",
    ]
}
