/// What the service would refuse, known beforehand.
enum NotificationRules {
    static func check(
        _ notification: NotificationFields, in context: PreparedNotification.Context
    ) throws(APNsError) {
        try checkDelivery(notification, in: context)
        if notification.raw == nil { try checkContent(notification) }
        if context.channelID != nil { try checkBroadcast(notification) }
    }

    private static func refuse(_ rule: String) -> APNsError { APNsError(.notificationInvalid, rule) }

    private static func checkDelivery(
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
        if let priority = notification.priority {
            guard [1, 5, 10].contains(priority.rawValue) else {
                throw refuse("The priority \(priority.rawValue) is not 1, 5 or 10.")
            }
            guard type != .background || priority == .considerPower else {
                throw refuse("A background push must have priority 5; it has \(priority.rawValue).")
            }
            guard type != .liveActivity || priority != .neverWake else {
                throw refuse("A Live Activity push must have priority 5 or 10; it has 1.")
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
            throw refuse("The expiration lies before 1970.")
        }
        guard type != .location || context.usesToken else {
            throw refuse("A location push needs a token key; the service takes no certificate for it.")
        }
    }

    private static func checkContent(_ notification: NotificationFields) throws(APNsError) {
        for field in notification.custom {
            guard field.key != "aps" else {
                throw refuse("The custom key \"aps\" is the service's own; use the methods of the notification.")
            }
            guard notification.pushMagic == nil || field.key != "mdm" else {
                throw refuse("The custom key \"mdm\" is set by the factory already.")
            }
            if let fault = field.fault { throw refuse("The custom key \"\(field.key)\" cannot be encoded: \(fault)") }
        }
        if let badge = notification.badge, badge < 0 { throw refuse("The badge \(badge) is below 0.") }
        if let volume = notification.sound?.volume, !(0...1).contains(volume) {
            throw refuse("The sound's volume \(volume) is not between 0 and 1.")
        }
        if let score = notification.relevanceScore {
            guard score.isFinite, notification.activity != nil || (0...1).contains(score) else {
                throw refuse("The relevance score \(score) is not between 0 and 1.")
            }
        }
        if notification.type == .background { try checkBackground(notification) }
        if let activity = notification.activity { try check(activity, of: notification) }
    }

    private static func checkBackground(_ notification: NotificationFields) throws(APNsError) {
        guard notification.isContentAvailable else {
            throw refuse("A background push must have content-available; chain contentAvailable().")
        }
        guard notification.alert.isEmpty, notification.plainAlert == nil, notification.sound == nil,
            notification.badge == nil
        else { throw refuse("A background push shows nothing; with an alert, sound or badge it must be an alert push.") }
    }

    private static func check(
        _ activity: ActivityFields, of notification: NotificationFields
    ) throws(APNsError) {
        if let fault = notification.activityFault { throw refuse("The Live Activity's \(fault)") }
        guard notification.type == .liveActivity else {
            throw refuse("Live Activity fields are only for a liveactivity push.")
        }
        guard !notification.alert.hasMoreThanTexts else {
            throw refuse("A Live Activity's alert has no launch image, action or summary.")
        }
        switch activity.event {
        case .start:
            guard activity.attributesType?.isEmpty == false else {
                throw refuse("Starting a Live Activity needs the name of its attributes' type.")
            }
            guard notification.alert.isNestable || notification.plainAlert != nil else {
                throw refuse("Starting a Live Activity needs an alert: chain title(_:) or body(_:).")
            }
            if case .channel(let id) = activity.input, id.isEmpty { throw refuse("The activity's channel ID is empty.") }
        case .update, .end: break
        }
    }

    private static func checkBroadcast(_ notification: NotificationFields) throws(APNsError) {
        guard notification.type == .liveActivity else {
            throw refuse("A broadcast must be a liveactivity push; it is \(notification.type).")
        }
        guard notification.activity?.event != .start else {
            throw refuse("A broadcast can update and end a Live Activity, not start one.")
        }
        guard notification.collapseID == nil else { throw refuse("A broadcast has no collapse ID.") }
        guard notification.topic == nil else { throw refuse("A broadcast has no topic; set the bundle ID.") }
    }

    /// What may stand in a header.
    static func isPrintable(_ text: String, allowsSpace: Bool = false) -> Bool {
        text.utf8.allSatisfy { (0x21...0x7E).contains($0) || (allowsSpace && $0 == 0x20) }
    }
}
