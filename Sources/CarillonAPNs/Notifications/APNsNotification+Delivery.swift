#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// How the service treats the notification.
extension APNsNotification {
    /// What the service calls the notification in its answer. It makes an ID itself when there is none.
    ///
    /// The ID is the notification's, so that many tokens share it.
    public consuming func id(_ id: UUID) -> Self { with { $0.id = id } }

    /// Until when the service tries; without it the service decides.
    public consuming func expiration(_ expiration: APNsExpiration) -> Self { with { $0.expiration = expiration } }

    /// Until when the service tries.
    public consuming func expiration(_ date: Date) -> Self { expiration(.at(date)) }

    /// How urgent it is; without it the push type decides.
    public consuming func priority(_ priority: APNsPriority) -> Self { with { $0.priority = priority } }

    /// The whole topic, instead of the one that is made from bundle ID and push type.
    public consuming func topic(_ topic: String) -> Self { with { $0.topic = topic } }

    /// The app, instead of the client's ``APNsClient/Configuration/bundleID``.
    public consuming func bundleID(_ bundleID: String) -> Self { with { $0.bundleID = bundleID } }

    /// Replaces an earlier notification of the same ID on the device. At most 64 bytes of printable ASCII.
    public consuming func collapseID(_ id: String) -> Self { with { $0.collapseID = id } }

    /// Sends a payload of any size and leaves the refusal to the service, should its limit rise.
    public consuming func withoutSizeCheck() -> Self { with { $0.isSizeChecked = false } }

    /// Turns off the checks of the push type's rules, for example after Apple changed a rule.
    ///
    /// Without this method, ``APNsClient`` refuses content that the push type ignores or lacks, also in a raw payload, values
    /// outside of their range, a topic without the suffix of the push type, and a priority or credentials that the push type
    /// does not allow: see <doc:Checks>. The client still refuses what cannot be sent: headers that are not valid, values that
    /// cannot be encoded, a broadcast that is none, and a payload that is too large (see ``withoutSizeCheck()``).
    public consuming func withoutChecks() -> Self { with { $0.isChecked = false } }
}
