import CarillonWire

/// A device with its user and its profile, as far as updates go: what it says of itself, and how far the log of its app's updates was
/// evaluated for it.
///
/// Every update up to `cursor` that lives and matches its parameters has a row of its own for it.
package struct UpdateBinding: Equatable, Sendable {
    package var serial: BindingSerial
    package var device: DeviceSerial
    package var user: UserID?
    package var profile: String
    /// Counts what changed of parameters and kinds.
    package var revision: Int64
    /// The device's own name for its parameters; nil before it said any.
    package var parametersRevision: String?
    package var values: ParameterValues
    /// When the location was said, which counts for a day.
    package var locatedAt: Timestamp?
    /// Of updates, that it processes: the names of ``UpdateKind``.
    package var kinds: Set<String>
    package var cursor: AudienceCursor
    /// Up to where it is known which content came and went.
    package var seenTo: UpdateSerial
    /// It missed content, and is to fetch everything.
    package var needsResync: Bool
    /// The latest positions that it polled with: of everything, and of updates alone.
    package var receivedTo: ReceivedTo

    package init(
        serial: BindingSerial, device: DeviceSerial, user: UserID?, profile: String, revision: Int64,
        parametersRevision: String?, values: ParameterValues, locatedAt: Timestamp?, kinds: Set<String>, cursor: AudienceCursor,
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

    /// Whether it received less.
    package func isBehind(_ place: ReceivedTo) -> Bool {
        place.all > receivedTo.all || place.updates > receivedTo.updates
    }

    package static let longestProfileBytes = 128
    package static let longestRevisionBytes = 64
    package static let locationSeconds: Int64 = 86_400
    /// The number of bindings of a device, over all its users and profiles. Beyond it the binding that was used least recently and has nothing
    /// unfinished is removed for a new one.
    package static let mostOfDevice = 100
}

/// Places of positions: a device that polls with an earlier one was brought back to what it was before.
package struct ReceivedTo: Equatable, Sendable {
    package var all: Int64
    package var updates: Int64

    package init(all: Int64, updates: Int64) {
        self.all = all
        self.updates = updates
    }
}

/// How far a log was evaluated, and the version of the rules by which its audiences were read: under others it counts for nothing.
package struct AudienceCursor: Equatable, Sendable {
    package var place: UpdateSerial
    package var rules: Int64

    package init(_ place: UpdateSerial, rules: Int64) {
        self.place = place
        self.rules = rules
    }

    package static let nowhere = AudienceCursor(UpdateSerial(0), rules: 0)
}

/// The store's number for a binding; never used twice.
package struct BindingSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// What became of an update at a binding: for a standing one, of an entry into its audience.
package struct CompletionKey: Hashable, Sendable {
    package var update: UpdateSerial
    package var binding: BindingSerial
    package var entry: Int

    package init(update: UpdateSerial, binding: BindingSerial, entry: Int) {
        self.update = update
        self.binding = binding
        self.entry = entry
    }

    /// What the envelopes of it have as their topic, by which a later one takes the place of an earlier.
    package var topic: String { "\(binding.rawValue)/\(entry)" }

    /// - Parameter topic: As ``topic`` writes it.
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
    /// The device had received it, and left the audience. When the device returns, a standing update begins another entry, and another
    /// update goes on.
    package var hasLeft: Bool
    /// The update that stands for it, when it is written first.
    package var coalescedBy: UpdateSerial?

    package init(
        key: CompletionKey, machine: CompletionMachine, changedAt: Timestamp, orderKey: String? = nil,
        hasLeft: Bool = false, coalescedBy: UpdateSerial? = nil
    ) {
        self.key = key
        self.machine = machine
        self.changedAt = changedAt
        self.orderKey = orderKey
        self.hasLeft = hasLeft
        self.coalescedBy = coalescedBy
    }

    /// How many entries of a standing update are known for a binding.
    package static let mostEntries = 10
}

/// An update on its way into a device's inbox.
package struct UpdateOffer: Equatable, Sendable {
    package var key: CompletionKey
    /// The revision of the binding for which the update was found to match.
    package var revision: Int64
    /// Whether the completion exists already and is due.
    package var isAgain: Bool
    /// Which this will be.
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
