#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A checked and encoded notification, for any number of tokens.
struct PreparedNotification: Sendable {
    let head: APNsRequestHead
    let payload: RequestBody

    /// The facts of the client that the notification needs.
    struct Context: Sendable {
        var bundleID: String?
        var usesToken: Bool
        /// The channel of a broadcast, which has no APNs topic.
        var channelID: String?
        /// An ID for a notification that has none, if its pushes may be sent again.
        var fallbackID: UUID?
    }

    init(_ notification: APNsNotification, in context: Context) throws(APNsError) {
        let isBroadcast = context.channelID != nil
        let hasGoodPayload = notification.hasGoodPayload(isBroadcast: isBroadcast)
        try self.init(notification.fields, in: context, hasGoodPayload: hasGoodPayload)
        if !hasGoodPayload { notification.notePassed(isBroadcast: isBroadcast) }
    }

    private init(
        _ notification: NotificationFields, in context: Context, hasGoodPayload: Bool
    ) throws(APNsError) {
        try NotificationRules.check(notification, in: context, hasGoodPayload: hasGoodPayload)
        let bytes = notification.payload
        let isBroadcast = context.channelID != nil
        let limit = isBroadcast ? 5120 : notification.type.payloadLimit
        guard !bytes.isEmpty else {
            throw APNsError(.notificationInvalid, "The payload is empty; a push must have a payload.")
        }
        guard !notification.isSizeChecked || bytes.count <= limit else {
            throw APNsError(
                .payloadTooLarge,
                "The payload has \(bytes.count) bytes; a \(isBroadcast ? "broadcast" : "push of type \(notification.type)") must have at most \(limit)."
            )
        }
        payload = RequestBody(bytes)
        var fields: [HeaderField] = []
        fields.reserveCapacity(6)
        if let channelID = context.channelID {
            fields.append(HeaderField(.apnsChannelID, channelID))
        } else if let topic = notification.topic(in: context) {
            fields.append(HeaderField(.apnsTopic, topic))
        }
        fields.append(HeaderField(.apnsPushType, notification.type.description))
        if let priority = notification.priority ?? notification.type.defaultPriority {
            fields.append(HeaderField(.apnsPriority, String(priority.rawValue)))
        }
        let expiration = notification.expiration ?? (isBroadcast ? .immediately : nil)
        if let expiration { fields.append(HeaderField(.apnsExpiration, String(expiration.seconds))) }
        if let collapseID = notification.collapseID { fields.append(HeaderField(.apnsCollapseID, collapseID)) }
        if let id = notification.id ?? context.fallbackID {
            fields.append(HeaderField(isBroadcast ? .apnsRequestID : .apnsID, id.uuidString.lowercased()))
        }
        head = APNsRequestHead(fields: fields)
    }
}

extension NotificationFields {
    /// Returns the APNs topic that is sent; nil if neither the notification nor the client sets one.
    func topic(in context: PreparedNotification.Context) -> String? {
        if let topic { return topic }
        guard let bundleID = bundleID ?? context.bundleID, let suffix = type.topicSuffix else { return nil }
        return bundleID + suffix
    }
}
