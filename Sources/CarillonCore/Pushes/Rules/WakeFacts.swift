package import CarillonWire

/// A fact that ``WakeRules`` needs next.
package enum WakeQuestion: Equatable, Sendable {
    /// Does the app have a text for alerts?
    case alertText
    /// Does an envelope wait that wakes the device?
    case waking
    /// Which envelopes that wait wake the device?
    case span
    /// Is the inbox empty?
    case inbox
}

/// The address to which pushes of a device are sent.
package struct PushAddress: Equatable, Sendable {
    package var token: PushToken
    /// The revision of the address, as ``DeviceRegistration/addressRevision``.
    package var revision: Int64

    package init(token: PushToken, revision: Int64) {
        self.token = token
        self.revision = revision
    }
}

/// The facts that a decision about the wakes of a device needs. A fact is nil if it was not read.
package struct WakeFacts: Equatable, Sendable {
    package var reach: PushReach
    package var hasAlertText: Bool?
    package var isWaking: Bool?
    /// Read together with ``isWaking`` if the span was requested.
    package var span: PushSpan?
    package var isInboxEmpty: Bool?

    package init(
        reach: PushReach, hasAlertText: Bool? = nil, isWaking: Bool? = nil, span: PushSpan? = nil, isInboxEmpty: Bool? = nil
    ) {
        self.reach = reach
        self.hasAlertText = hasAlertText
        self.isWaking = isWaking
        self.span = span
        self.isInboxEmpty = isInboxEmpty
    }
}

/// A wake that is due.
package struct DueWake: Equatable, Sendable {
    package var device: DeviceSerial
    package var queue: PushQueue
    package var dueAt: Timestamp
    package var setAt: Timestamp
    /// Nil if the device cannot be pushed to, or its app was deleted.
    package var address: PushAddress?

    package init(
        device: DeviceSerial, queue: PushQueue, dueAt: Timestamp, setAt: Timestamp, address: PushAddress?
    ) {
        self.device = device
        self.queue = queue
        self.dueAt = dueAt
        self.setAt = setAt
        self.address = address
    }
}

package enum WakeVerdict: Equatable, Sendable {
    /// Answer this question, and decide again.
    case needs(WakeQuestion)
    case decided(WakeRuling)
}

/// A decision about the wakes of a device.
package struct WakeRuling: Equatable, Sendable {
    /// The reach of the device after the decision.
    package var reach: PushReach
    package var changes = WakeChanges()
    /// How the device is notified of an envelope that begins to wait.
    package var mode = WakeMode.none

    package init(_ reach: PushReach) { self.reach = reach }
}
