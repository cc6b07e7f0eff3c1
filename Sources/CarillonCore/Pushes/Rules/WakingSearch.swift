package import CarillonWire

/// What of a waiting envelope decides whether its device is woken for it.
package struct WaitingEnvelope: Equatable, Sendable {
    /// Nil for a mode that is unknown.
    package var wake: WakeMode?
    package var expiresAt: Timestamp

    package init(wake: WakeMode?, expiresAt: Timestamp) {
        self.wake = wake
        self.expiresAt = expiresAt
    }

    /// An envelope that has an alert of its own needs no wake.
    package func wakes(at now: Timestamp) -> Bool { wake == .background && expiresAt > now }
}

/// The envelopes that a push is for.
package struct PushSpan: Equatable, Sendable {
    package var first: Int64
    package var last: Int64
    /// Of the last.
    package var expiresAt: Timestamp

    package init(first: Int64, last: Int64, expiresAt: Timestamp) {
        self.first = first
        self.last = last
        self.expiresAt = expiresAt
    }
}

/// A search for the first envelope that waits and that its device is woken for.
///
/// A device that is woken for none may have thousands of envelopes: what was searched once is not searched again
/// (``PushReach/quietBefore``). Positions are read in their order, from ``beyond`` on, ``atOnce`` at a time.
package struct FirstWaking: Sendable {
    package static let atOnce = 16

    private let now: Timestamp
    /// Positions up to this one were looked at.
    package private(set) var beyond: Int64
    /// Nil until an envelope is found: its position and its end.
    package private(set) var found: PushSpan?

    package init(from quietBefore: Int64, at now: Timestamp) {
        self.now = now
        beyond = quietBefore - 1
    }

    /// Looks at the envelope of a position. Returns whether the search is over.
    ///
    /// - Parameter envelope: Nil if no envelope is there.
    package mutating func saw(_ envelope: WaitingEnvelope?, at position: Int64) -> Bool {
        beyond = max(beyond, position)
        guard let envelope, envelope.wakes(at: now) else { return false }
        found = PushSpan(first: position, last: position, expiresAt: envelope.expiresAt)
        return true
    }
}

/// A search for the last envelope that a wake is for: among the newest envelopes, the newest first, up to ``looks`` of them.
package struct LastWaking: Sendable {
    package static let looks = 256

    private let first: PushSpan
    private let now: Timestamp
    private var oldest: Int64?
    private var last: PushSpan?

    /// - Parameter first: The first envelope that wakes.
    package init(after first: PushSpan, at now: Timestamp) {
        self.first = first
        self.now = now
    }

    /// Goes on with a position. Returns whether its envelope must be looked at; no earlier one must be if not.
    package mutating func reached(_ position: Int64) -> Bool {
        oldest = position
        return position > first.first
    }

    /// Looks at the envelope of a position. Returns whether the search is over.
    ///
    /// - Parameter envelope: Nil if no envelope is there.
    package mutating func saw(_ envelope: WaitingEnvelope?, at position: Int64) -> Bool {
        guard let envelope, envelope.wakes(at: now) else { return false }
        last = PushSpan(first: first.first, last: position, expiresAt: envelope.expiresAt)
        return true
    }

    /// What the wake is for. If none of the newest wakes, the wake is for everything before them.
    package var span: PushSpan {
        if let last { return last }
        guard let oldest, oldest > first.first else { return first }
        return PushSpan(first: first.first, last: oldest - 1, expiresAt: first.expiresAt)
    }
}
