/// Rejects, before anything is sent, notifications that APNs would reject or that the device would ignore.
///
/// The rules of headers and topics are on Apple's page "Sending notification requests to APNs". Those of the content are on the pages
/// that ``ContentKey`` names.
enum NotificationRules {
    /// - Parameter hasGoodPayload: Whether a raw payload passed its rules before, so that it need not be read again.
    static func check(
        _ notification: NotificationFields, in context: PreparedNotification.Context, hasGoodPayload: Bool
    ) throws(APNsError) {
        try checkHeaders(notification, in: context)
        if notification.raw == nil { try checkValues(notification) }
        if context.channelID != nil { try checkBroadcast(notification) }
        guard notification.isChecked else { return }
        try checkDelivery(notification, in: context)
        if let payload = notification.raw {
            try checkMethods(of: notification)
            guard !hasGoodPayload else { return }
            try PayloadRules.check(payload, of: notification.type, isBroadcast: context.channelID != nil)
        } else {
            try checkContent(notification)
        }
    }

    static func refuse(_ rule: String) -> APNsError { APNsError(.notificationInvalid, rule) }

    /// - Parameter member: A method, or a member in quotation marks.
    static func ignored(_ member: String, by type: APNsPushType) -> APNsError {
        refuse("A push of type \(type)\(type == .background ? " shows nothing and" : "") ignores \(member); leave it out.")
    }

    // MARK: Checks that cannot be turned off

    private static func checkHeaders(
        _ notification: NotificationFields, in context: PreparedNotification.Context
    ) throws(APNsError) {
        let type = notification.type
        guard isPrintable(type.description), (1...64).contains(type.description.utf8.count) else {
            throw refuse("A push type must be a word of 1 to 64 bytes of printable ASCII.")
        }
        if context.channelID == nil {
            if let topic = notification.topic(in: context) {
                guard (1...512).contains(topic.utf8.count), isPrintable(topic) else {
                    throw refuse(
                        "The topic \"\(topic.prefix(64))\" must be 1 to 512 bytes of printable ASCII without spaces.")
                }
                guard topic != type.topicSuffix else { throw refuse("The bundle ID is empty.") }
            } else if context.usesToken {
                throw refuse(
                    type.topicSuffix == nil
                        ? "A \(type) push needs a topic of its own: set topic(_:)."
                        : "A push with a token key needs a topic: set the client's bundleID, or bundleID(_:) or topic(_:)."
                )
            }
        }
        if let collapseID = notification.collapseID {
            guard (1...64).contains(collapseID.utf8.count), isPrintable(collapseID, allowsSpace: true),
                collapseID.first != " ", collapseID.last != " "
            else {
                throw refuse(
                    "The collapse ID has \(collapseID.utf8.count) bytes; it must have 1 to 64, of printable ASCII, and no space at its ends."
                )
            }
        }
        if let expiration = notification.expiration, expiration.seconds < 0 {
            throw refuse("The expiration must not be before 1970.")
        }
    }

    /// Rejects values that cannot be encoded, or whose names would occur twice in the payload.
    private static func checkValues(_ notification: NotificationFields) throws(APNsError) {
        for field in notification.custom {
            guard field.key != "aps" else {
                throw refuse("The custom key \"aps\" belongs to the service; use the methods of the notification.")
            }
            guard notification.pushMagic == nil || field.key != "mdm" else {
                throw refuse("The custom key \"mdm\" is already set by mdm(pushMagic:topic:); leave it out.")
            }
            if let fault = field.fault { throw refuse("The custom key \"\(field.key)\" cannot be encoded: \(fault)") }
        }
        if let fault = notification.activityFault { throw refuse("The Live Activity's \(fault)") }
    }

    // MARK: Checks that withoutChecks() turns off

    private static func checkDelivery(
        _ notification: NotificationFields, in context: PreparedNotification.Context
    ) throws(APNsError) {
        let type = notification.type
        if context.channelID == nil, let topic = notification.topic, let suffix = type.topicSuffix,
            !topic.hasSuffix(suffix), APNsPushType.known.contains(type)
        {
            throw refuse(
                "The topic \"\(topic.prefix(64))\" of a push of type \(type) must end with \"\(suffix)\": correct topic(_:), or set bundleID(_:) instead."
            )
        }
        if let priority = notification.priority {
            guard [1, 5, 10].contains(priority.rawValue) else {
                throw refuse("The priority must be 1, 5 or 10; it is \(priority.rawValue).")
            }
            guard type != .background || priority == .considerPower else {
                throw refuse("A background push must have priority 5; it has \(priority.rawValue).")
            }
            guard type != .liveActivity || priority != .neverWake else {
                throw refuse("A Live Activity push must have priority 5 or 10; it has 1.")
            }
        }
        guard type != .location || context.usesToken else {
            throw refuse("A location push needs a token key; APNs does not accept a certificate for it.")
        }
    }

    private static func checkContent(_ notification: NotificationFields) throws(APNsError) {
        try checkMethods(of: notification)
        if let badge = notification.badge, badge < 0 { throw refuse("The badge must be at least 0; it is \(badge).") }
        if let volume = notification.sound?.volume, !(0...1).contains(volume) {
            throw refuse("The sound's volume must be from 0 to 1; it is \(volume).")
        }
        if let score = notification.relevanceScore {
            guard score.isFinite, notification.activity != nil || (0...1).contains(score) else {
                throw refuse("The relevance score must be from 0 to 1; it is \(score).")
            }
        }
        try checkNeeds(of: notification)
    }

    /// Rejects methods whose content would not be sent, or would not be read.
    private static func checkMethods(of notification: NotificationFields) throws(APNsError) {
        let type = notification.type
        if notification.raw != nil {
            guard
                let method = notification.method(setting: ContentKey.all) ?? notification.activityMethod
                    ?? notification.custom.first.map({ "custom(\"\($0.key)\")" })
            else { return }
            throw refuse("A raw payload is sent as it is, without \(method); put the member into the payload.")
        }
        if let method = notification.activityMethod { throw ignored(method, by: type) }
        // The device reads all fields of an alert.
        if type == .alert { return }
        if let method = notification.method(setting: ContentKey.ignored(by: type)) { throw ignored(method, by: type) }
        if type == .mdm, let key = notification.custom.first?.key { throw ignored("custom(\"\(key)\")", by: type) }
        if type == .liveActivity, let method = notification.alert.method(onlyBeyondActivities: true) {
            throw ignored(method, by: type)
        }
    }

    /// Rejects a notification without the content that its push type needs.
    private static func checkNeeds(of notification: NotificationFields) throws(APNsError) {
        switch notification.type {
        case .background:
            guard notification.isContentAvailable else {
                throw refuse("A background push must have content-available; chain contentAvailable().")
            }
        case .widgets, .controls:
            guard notification.isContentChanged else {
                throw refuse(
                    "A push of type \(notification.type) must have content-changed; begin with widgets or controls.")
            }
        case .fileProvider:
            guard notification.custom.contains(where: { $0.key == "container-identifier" }) else {
                throw refuse("A push of type fileprovider needs a container; begin with fileProvider(container:domain:).")
            }
        case .accessory:
            guard notification.accessory != nil else {
                throw refuse("A push of type accessory needs a message; begin with accessory(…).")
            }
        case .mdm:
            guard notification.pushMagic != nil else {
                throw refuse("A push of type mdm needs the push magic; begin with mdm(pushMagic:topic:).")
            }
        case .liveActivity:
            guard let activity = notification.activity else {
                throw refuse(
                    "A push of type liveactivity needs an event; begin with startLiveActivity(…), updateLiveActivity(…) or endLiveActivity(…)."
                )
            }
            try check(activity, of: notification)
        default: break
        }
    }

    private static func check(
        _ activity: ActivityFields, of notification: NotificationFields
    ) throws(APNsError) {
        for (name, value) in [("content-state", activity.contentState), ("attributes", activity.attributes)] {
            guard value?.isObject ?? true else { throw refuse("The Live Activity's \(name) must be encoded as an object.") }
        }
        guard activity.event == .end || activity.dismissalDate == nil else {
            throw refuse("dismissalDate(_:) is only for the end of a Live Activity; leave it out.")
        }
        guard activity.event == .start else { return }
        guard activity.attributesType?.isEmpty == false else {
            throw refuse("Starting a Live Activity needs the name of its attributes' type.")
        }
        guard notification.alert.isNestable || notification.plainAlert != nil else {
            throw refuse("Starting a Live Activity needs an alert: chain title(_:) or body(_:).")
        }
        if case .channel(let id) = activity.input, id.isEmpty {
            throw refuse("The activity's channel ID is empty; set it, or leave it out.")
        }
    }

    // MARK: Broadcasts

    static let startOfBroadcast = refuse("A broadcast can update and end a Live Activity, but not start one.")

    private static func checkBroadcast(_ notification: NotificationFields) throws(APNsError) {
        guard notification.type == .liveActivity else {
            throw refuse("A broadcast must be a liveactivity push; it is \(notification.type).")
        }
        guard notification.activity?.event != .start else { throw startOfBroadcast }
        // The checks of a raw payload reject a start as well.
        if !notification.isChecked, let payload = notification.raw, PayloadRules.isStart(payload) { throw startOfBroadcast }
        guard notification.collapseID == nil else { throw refuse("A broadcast has no collapse ID; leave it out.") }
        guard notification.topic == nil else { throw refuse("A broadcast has no topic; set the bundle ID.") }
    }

    /// Whether the text has only characters that are allowed in a header.
    static func isPrintable(_ text: String, allowsSpace: Bool = false) -> Bool {
        text.utf8.allSatisfy { (0x21...0x7E).contains($0) || (allowsSpace && $0 == 0x20) }
    }
}
