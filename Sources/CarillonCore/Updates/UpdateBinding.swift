import CarillonWire

/// A device with its user and its profile: the parameters that it reported, and the place up to which the log of its app's
/// updates was evaluated for it.
///
/// Every live update up to `cursor` whose audience matches the binding has a completion for it.
package struct UpdateBinding: Equatable, Sendable {
    package var serial: BindingSerial
    package var device: DeviceSerial
    package var user: UserID?
    package var profile: String
    /// Increases when parameters, the location or kinds change, and when the binding ends or is used again.
    package var revision: Int64
    /// The device's own revision of its parameters; nil before it reported one.
    package var parametersRevision: String?
    package var values: ParameterValues
    /// When the device reported its location. A location is valid for a day.
    package var locatedAt: Timestamp?
    /// The kinds of updates that the device processes: the names of ``UpdateKind``.
    package var kinds: Set<String>
    package var cursor: AudienceCursor
    /// The place up to which expired content was checked for the binding.
    package var seenTo: UpdateSerial
    /// Whether the device missed content and must fetch all content.
    package var needsResync: Bool
    /// The latest places that the device reported when it polled.
    package var receivedTo: ReceivedTo

    package init(
        serial: BindingSerial, device: DeviceSerial, user: UserID?, profile: String, revision: Int64,
        parametersRevision: String?, values: ParameterValues, locatedAt: Timestamp?, kinds: Set<String>,
        cursor: AudienceCursor,
        seenTo: UpdateSerial, needsResync: Bool, receivedTo: ReceivedTo
    ) {
        self.serial = serial
        self.device = device
        self.user = user
        self.profile = profile
        self.revision = revision
        self.parametersRevision = parametersRevision
        self.values = values
        self.locatedAt = locatedAt
        self.kinds = kinds
        self.cursor = cursor
        self.seenTo = seenTo
        self.needsResync = needsResync
        self.receivedTo = receivedTo
    }

    /// Whether the binding received less than a place.
    package func isBehind(_ place: ReceivedTo) -> Bool {
        place.all > receivedTo.all || place.updates > receivedTo.updates
    }

    package static let longestProfileBytes = 128
    package static let longestRevisionBytes = 64
    package static let locationSeconds: Int64 = 86_400
    /// The largest number of bindings of a device, for all its users and profiles. Beyond it the binding that was used least
    /// recently and has no unfinished completions is removed for a new one.
    package static let mostOfDevice = 100
}

/// The numbers in the positions of a polling device: of all envelopes, and of updates alone. A device with an earlier place than
/// before was restored to an earlier state.
package struct ReceivedTo: Equatable, Sendable {
    package var all: Int64
    package var updates: Int64

    package init(all: Int64, updates: Int64) {
        self.all = all
        self.updates = updates
    }
}

/// The place up to which a log was evaluated, and the version of the rules by which audiences were evaluated. Under other rules
/// the place is ignored.
package struct AudienceCursor: Equatable, Sendable {
    package var place: UpdateSerial
    package var rules: Int64

    package init(_ place: UpdateSerial, rules: Int64) {
        self.place = place
        self.rules = rules
    }

    package static let nowhere = AudienceCursor(UpdateSerial(0), rules: 0)
}

/// The store's number for a binding. A number is never used twice.
package struct BindingSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// Identifies the completion of an update at a binding. A standing update has a completion for each entry of the device into its
/// audience.
package struct CompletionKey: Hashable, Sendable {
    package var update: UpdateSerial
    package var binding: BindingSerial
    package var entry: Int

    package init(update: UpdateSerial, binding: BindingSerial, entry: Int) {
        self.update = update
        self.binding = binding
        self.entry = entry
    }

    /// The collapse key of the completion's envelopes: a later envelope replaces an earlier one.
    package var topic: String { "\(binding.rawValue)/\(entry)" }

    /// - Parameter topic: A text from ``topic``.
    package init?(_ update: UpdateSerial, topic: String) {
        let parts = topic.split(separator: "/")
        guard parts.count == 2, let binding = Int64(parts[0]), let entry = Int(parts[1]) else { return nil }
        self.init(update: update, binding: BindingSerial(binding), entry: entry)
    }
}

package struct Completion: Equatable, Sendable {
    package var key: CompletionKey
    package var machine: CompletionMachine
    package var changedAt: Timestamp
    package var orderKey: String?
    /// Whether the device left the audience after it had received the update. When the device returns, a standing update begins
    /// another entry, and another update continues.
    package var hasLeftAudience: Bool
    /// The update into which the completion is coalesced when it is first written.
    package var coalescedBy: UpdateSerial?

    package init(
        key: CompletionKey, machine: CompletionMachine, changedAt: Timestamp, orderKey: String? = nil,
        hasLeftAudience: Bool = false, coalescedBy: UpdateSerial? = nil
    ) {
        self.key = key
        self.machine = machine
        self.changedAt = changedAt
        self.orderKey = orderKey
        self.hasLeftAudience = hasLeftAudience
        self.coalescedBy = coalescedBy
    }

    /// The largest number of entries of a standing update that are stored for a binding.
    package static let mostEntries = 10
}

/// An update that is appended to a device's inbox.
package struct UpdateOffer: Equatable, Sendable {
    package var key: CompletionKey
    /// The revision of the binding with which the audience was evaluated.
    package var revision: Int64
    /// Whether the completion exists already and is due.
    package var isAgain: Bool
    /// The number of this attempt.
    package var attempt: Int
    package var orderKey: String?
    package var at: Timestamp
    /// The place of the binding in the log, if it is written together with the offer.
    package var cursor: AudienceCursor?

    package init(
        key: CompletionKey, revision: Int64, isAgain: Bool = false, attempt: Int, orderKey: String?, at: Timestamp,
        cursor: AudienceCursor? = nil
    ) {
        self.key = key
        self.revision = revision
        self.isAgain = isAgain
        self.attempt = attempt
        self.orderKey = orderKey
        self.at = at
        self.cursor = cursor
    }
}
