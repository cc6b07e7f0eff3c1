#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The delivery options of the notification.
extension APNsNotification {
    /// Sets the ID of the notification, which the response of APNs contains. Without it, APNs generates an ID.
    ///
    /// The ID belongs to the notification, so all pushes of it to several tokens have the same ID.
    public consuming func id(_ id: UUID) -> Self { with { $0.id = id } }

    /// Sets the time until which APNs tries to deliver the notification. Without it, APNs decides.
    public consuming func expiration(_ expiration: APNsExpiration) -> Self { with { $0.expiration = expiration } }

    /// Sets the time until which APNs tries to deliver the notification.
    public consuming func expiration(_ date: Date) -> Self { expiration(.at(date)) }

    /// Sets the priority. Without it, the priority depends on the push type.
    public consuming func priority(_ priority: APNsPriority) -> Self { with { $0.priority = priority } }

    /// Sets the whole APNs topic, instead of the one that is made of the bundle ID and the push type.
    public consuming func topic(_ topic: String) -> Self { with { $0.topic = topic } }

    /// Sets the app, instead of the client's ``APNsClient/Configuration/bundleID``.
    public consuming func bundleID(_ bundleID: String) -> Self { with { $0.bundleID = bundleID } }

    /// Sets the collapse ID. The notification replaces an earlier one with the same ID on the device. The ID has at most 64
    /// bytes of printable ASCII.
    public consuming func collapseID(_ id: String) -> Self { with { $0.collapseID = id } }

    /// Turns off the check of the payload's size, for the case that APNs raises its limit. APNs then rejects a payload that
    /// is too large.
    public consuming func withoutSizeCheck() -> Self { with { $0.isSizeChecked = false } }

    /// Turns off the checks of the push type's rules, for example after Apple changed a rule.
    ///
    /// Without this method, ``APNsClient`` rejects content that the push type ignores or lacks, also in a raw payload. It
    /// rejects values outside of their range, an APNs topic without the suffix of the push type, and a priority or
    /// credentials that the push type does not allow: see <doc:Checks>. With this method, the client still rejects a
    /// notification that cannot be sent: invalid headers, values that cannot be encoded, an invalid broadcast, and a payload
    /// that is too large (see ``withoutSizeCheck()``).
    public consuming func withoutChecks() -> Self { with { $0.isChecked = false } }
}
