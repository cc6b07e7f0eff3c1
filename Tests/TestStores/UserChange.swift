package import CarillonCore

/// The effects of a change of a device's user on the device's data. This is the only list of them.
///
/// `docs/users.md` shows the same rows. In the transaction that changes the user, stores end the data that
/// ``UserChangeExtent`` names. ``EnvelopeKind/Behaviour/userChange`` has the extent of each kind of envelope.
package enum UserChange {
    /// One row of the list.
    package struct Rule: Equatable, Sendable {
        package var extent: UserChangeExtent
        /// The final state, or why the data stays.
        package var outcome: String
        /// The parties that are notified; empty if none is.
        package var notified: String

        init(_ extent: UserChangeExtent, _ outcome: String, notified: String = "") {
            self.extent = extent
            self.outcome = outcome
            self.notified = notified
        }
    }

    /// A file of the attachments.
    package enum File: String, CaseIterable, Sendable {
        case upload = "unfinished upload"
        case uploaded = "uploaded attachment"
        case readable = "attachment to read"
    }

    package static func rule(for kind: EnvelopeKind) -> Rule {
        let extent = kind.behaviour.userChange
        return switch kind {
        case .message: Rule(extent, "`gone`", notified: "its sender, when it asks")
        case .channelClosed, .channelError: Rule(extent, "It names only a channel that is closed.")
        case .pingFailed, .recovered: Rule(extent, "removed with its channel")
        case .deviceStatus: Rule(extent, "It is about the device.")
        case .fired: Rule(extent, "removed with its subscription")
        case .update: Rule(extent, "`gone`; offered again when the user returns", notified: "its publisher, when it asks")
        case .retraction: Rule(extent, "removed: the device drops what the former user had")
        case .serviceRequest: Rule(extent, "`user_mismatch`", notified: "the consumer")
        case .serviceReply: Rule(extent, "removed")
        case .serviceNotice: Rule(extent, "removed")
        }
    }

    package static func rule(for file: File) -> Rule {
        switch file {
        case .upload: Rule(.endsIfOfUser, "removed", notified: "its sender: 404 `attachment_unknown`")
        case .uploaded: Rule(.endsIfOfUser, "It stays for its readers; the device can neither fetch nor delete it.")
        case .readable: Rule(.endsIfOfUser, "The device is no longer a reader; without readers it is removed.")
        }
    }

    package static func rule(for table: DeviceTable) -> Rule {
        switch table {
        case .anonymousAddress: Rule(.stays, "It is about anonymous devices, which have no user.")
        case .attachment: Rule(.endsIfOfUser, "see the files")
        case .attachmentPartyGone: Rule(.stays, "It is about deleted devices.")
        case .attachmentReader: Rule(.endsIfOfUser, "see the files")
        case .binding: Rule(.ends, "ended, with its locations; it goes on when the user returns")
        case .channel:
            Rule(.endsIfOfUser, "closed", notified: "the app: error 203; the backend that watches it: `user_changed`")
        case .completion: Rule(.ends, "`gone`", notified: "its publisher, when it asks")
        case .device: Rule(.stays, "The device is the same.")
        case .deviceProfile: Rule(.stays, "Only the user changes, and the badge starts at 0.")
        case .disconnectCallback: Rule(.stays, "It is still due to a backend.")
        case .endedDevice: Rule(.stays, "It is about deleted devices.")
        case .envelope: Rule(.endsIfOfUser, "see the envelopes")
        case .throttledFiring: Rule(.endsIfOfUser, "removed with its subscription")
        case .idempotency: Rule(.stays, "It is the sender's, for up to a day.")
        case .inboxIndex: Rule(.stays, "It follows `envelope` and `outcome`.")
        case .keptPush: Rule(.endsIfOfUser, "removed with its push")
        case .leasedWork: Rule(.stays, "It follows `watch` and `disconnect_callback`.")
        case .outcome: Rule(.stays, "It is the sender's.")
        case .push: Rule(.endsIfOfUser, "`cancelled`, unless it is already being sent", notified: "its sender, when it asks")
        case .registration: Rule(.stays, "The device is the same.")
        case .serviceCluster: Rule(.stays, "It is the operator's.")
        case .serviceOffer, .serviceProvider: Rule(.ends, "removed", notified: "devices that could call it: `providers`")
        case .serviceRequest:
            Rule(
                .ends, "`user_mismatch` or `cancelled`",
                notified: "the consumer of a request to the device; the provider of a request of the device")
        case .subscription, .subscriptionItem: Rule(.endsIfOfUser, "removed")
        case .wake: Rule(.endsIfOfUser, "cancelled if nothing else waits that wakes the device")
        case .watch: Rule(.endsIfOfUser, "removed with its channel", notified: "its backend: `user_changed`")
        }
    }

    /// The rows of the table in `docs/users.md`.
    package static var rows: [String] {
        EnvelopeKind.allCases.map { row("envelope `\($0)`", rule(for: $0)) }
            + File.allCases.map { row("file: \($0.rawValue)", rule(for: $0)) }
            + DeviceTable.allCases.map { row("table `\($0.rawValue)`", rule(for: $0)) }
    }

    private static func row(_ subject: String, _ rule: Rule) -> String {
        "| \(subject) | \(rule.extent.text) | \(rule.outcome) | \(rule.notified) |"
    }
}

/// A table of the store whose rows belong to a device. A table with a column for a device that is missing here fails a test.
package enum DeviceTable: String, CaseIterable, Sendable {
    case anonymousAddress = "anonymous_address"
    case attachment
    case attachmentPartyGone = "attachment_party_gone"
    case attachmentReader = "attachment_reader"
    case binding
    case channel
    case completion
    case device
    case deviceProfile = "device_profile"
    case disconnectCallback = "disconnect_callback"
    case endedDevice = "ended_device"
    case envelope
    case throttledFiring = "held_firing"
    case idempotency
    case inboxIndex = "inbox_index"
    case keptPush = "kept_push"
    case leasedWork = "leased_work"
    case outcome
    case push
    case registration
    case serviceCluster = "service_cluster"
    case serviceOffer = "service_offer"
    case serviceProvider = "service_provider"
    case serviceRequest = "service_request"
    case subscription
    case subscriptionItem = "subscription_item"
    case wake
    case watch
}

extension UserChangeExtent {
    fileprivate var text: String {
        switch self {
        case .stays: "no"
        case .endsIfOfUser: "if it was made for the user"
        case .ends: "yes"
        }
    }
}
