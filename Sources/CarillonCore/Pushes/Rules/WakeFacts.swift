package import CarillonWire

/// What ``WakeRules`` must know next.
package enum WakeQuestion: Equatable, Sendable {
    /// Does the app have a text for alerts?
    case alertText
    /// Does an envelope wait that the device is woken for?
    case waking
    /// The same, and which envelopes are they?
    case span
    /// Does no envelope wait at all?
    case inbox
}

/// Where a device can be pushed to.
package struct PushAddress: Equatable, Sendable {
    package var token: PushToken
    /// Of the address, as ``DeviceRegistration/addressRevision``.
    package var revision: Int64

    package init(token: PushToken, revision: Int64) {
        self.token = token
        self.revision = revision
    }
}

/// What is known when a decision about the wakes of a device is made. Nil if it was not read.
package struct WakeFacts: Equatable, Sendable {
    package var reach: PushReach
    package var hasAlertText: Bool?
    package var isWaking: Bool?
    /// Known if ``isWaking`` is true and the span was asked for.
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

/// A wake whose time has come.
package struct DueWake: Equatable, Sendable {
    package var device: DeviceSerial
    package var lane: PushLane
    package var dueAt: Timestamp
    package var setAt: Timestamp
    /// Nil if the device cannot be pushed to, or its app was deleted.
    package var address: PushAddress?

    package init(
        device: DeviceSerial, lane: PushLane, dueAt: Timestamp, setAt: Timestamp, address: PushAddress?
    ) {
        self.device = device
        self.lane = lane
        self.dueAt = dueAt
        self.setAt = setAt
        self.address = address
    }
}

package enum WakeVerdict: Equatable, Sendable {
    /// Answer this as well, and decide again.
    case needs(WakeQuestion)
    case decided(WakeRuling)
}

/// A decision about the wakes of a device.
package struct WakeRuling: Equatable, Sendable {
    /// As the decision leaves it.
    package var reach: PushReach
    package var changes = WakeChanges()
    /// How the device is notified of an envelope that begins to wait.
    package var mode = WakeMode.none

    package init(_ reach: PushReach) { self.reach = reach }
}
