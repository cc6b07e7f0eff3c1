/// A device for which a binding is requested, and its owner.
package struct BindingOwner: Equatable, Sendable {
    package var device: DeviceSerial
    package var app: AppSerial
    package var user: UserID?
    package var isAppDeleted: Bool

    package init(device: DeviceSerial, app: AppSerial, user: UserID?, isAppDeleted: Bool = false) {
        self.device = device
        self.app = app
        self.user = user
        self.isAppDeleted = isAppDeleted
    }
}

/// A binding of a device, without the data that the device reported.
package struct BindingRow: Equatable, Sendable {
    package var serial: BindingSerial
    /// Whether the binding belongs to the user and the profile of the device. After a change of the user: whether it belongs
    /// to the new user. The store compares bytes; canonically equivalent texts are different users and profiles.
    package var isOwn: Bool
    package var revision: Int64
    package var needsResync: Bool
    /// Nil if the binding has not ended.
    package var endedAt: Timestamp?

    package init(
        serial: BindingSerial, isOwn: Bool, revision: Int64, needsResync: Bool, endedAt: Timestamp?
    ) {
        self.serial = serial
        self.isOwn = isOwn
        self.revision = revision
        self.needsResync = needsResync
        self.endedAt = endedAt
    }
}

/// The state of content that expired before the device of an ended binding finished it.
package struct MissedContent: Equatable, Sendable {
    /// Whether some of it expired after its completion had ended with the binding.
    package var endedWithBinding: Bool
    /// Whether the device received some of it and reported no result, and no later content replaces it.
    package var isWithoutResult: Bool

    package init(endedWithBinding: Bool, isWithoutResult: Bool) {
        self.endedWithBinding = endedWithBinding
        self.isWithoutResult = isWithoutResult
    }
}

/// The facts for beginning a binding.
package struct BeginFacts: Equatable, Sendable {
    /// Nil if the device does not exist.
    package var owner: BindingOwner?
    /// All bindings of the device.
    package var bindings: [BindingRow]
    /// The bindings of the device with unfinished completions. Nil if they were not read.
    package var unfinished: Set<BindingSerial>?
    /// The missed content of the binding that is used again. Nil if it was not read.
    package var missed: MissedContent?

    package init(
        owner: BindingOwner? = nil, bindings: [BindingRow] = [], unfinished: Set<BindingSerial>? = nil,
        missed: MissedContent? = nil
    ) {
        self.owner = owner
        self.bindings = bindings
        self.unfinished = unfinished
        self.missed = missed
    }
}

/// The facts for setting the place of a binding in the log.
package struct CursorFacts: Equatable, Sendable {
    package var revision: Int64
    package var cursor: AudienceCursor
    package var seenTo: UpdateSerial
    /// The last content update of the app that expired; zero if no content update of the app expired.
    package var lastExpired: UpdateSerial

    package init(revision: Int64, cursor: AudienceCursor, seenTo: UpdateSerial, lastExpired: UpdateSerial) {
        self.revision = revision
        self.cursor = cursor
        self.seenTo = seenTo
        self.lastExpired = lastExpired
    }
}
