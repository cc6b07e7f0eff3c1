package import CarillonWire

/// The facts of a waiting envelope that decide whether it wakes its device.
package struct WaitingEnvelope: Equatable, Sendable {
    /// The wake mode; nil if it is unknown.
    package var wake: WakeMode?
    package var expiresAt: Timestamp

    package init(wake: WakeMode?, expiresAt: Timestamp) {
        self.wake = wake
        self.expiresAt = expiresAt
    }

    /// Whether the envelope wakes its device. An envelope that has an alert of its own does not.
    package func wakes(at now: Timestamp) -> Bool { wake == .background && expiresAt > now }
}

/// The envelopes that a push is for.
package struct PushSpan: Equatable, Sendable {
    package var first: Int64
    package var last: Int64
    /// The expiry of the last envelope.
    package var expiresAt: Timestamp

    package init(first: Int64, last: Int64, expiresAt: Timestamp) {
        self.first = first
        self.last = last
        self.expiresAt = expiresAt
    }
}

/// A search for the first waiting envelope that wakes its device.
///
/// A device can have thousands of envelopes that do not wake it. Envelopes that were searched once are not searched again
/// (``PushReach/quietBefore``). The positions in the table are read in their order, from ``beyond`` on, ``atOnce`` at a
/// time.
package struct FirstWaking: Sendable {
    package static let atOnce = 16

    private let now: Timestamp
    /// The last position that was searched.
    package private(set) var beyond: Int64
    /// The position and the expiry of the envelope that was found; nil until one is found.
    package private(set) var found: PushSpan?

    package init(from quietBefore: Int64, at now: Timestamp) {
        self.now = now
        beyond = quietBefore - 1
    }

    /// Notes the envelope of a position. Returns whether the search is over.
    ///
    /// - Parameter envelope: Nil if there is no envelope at the position.
    package mutating func saw(_ envelope: WaitingEnvelope?, at position: Int64) -> Bool {
        beyond = max(beyond, position)
        guard let envelope, envelope.wakes(at: now) else { return false }
        found = PushSpan(first: position, last: position, expiresAt: envelope.expiresAt)
        return true
    }
}

/// A search for the last envelope that a wake is for: among the newest ``looks`` envelopes, the newest first.
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

    /// Goes on with a position. Returns whether its envelope must be read. If it must not, no earlier envelope must be read
    /// either.
    package mutating func reached(_ position: Int64) -> Bool {
        oldest = position
        return position > first.first
    }

    /// Notes the envelope of a position. Returns whether the search is over.
    ///
    /// - Parameter envelope: Nil if there is no envelope at the position.
    package mutating func saw(_ envelope: WaitingEnvelope?, at position: Int64) -> Bool {
        guard let envelope, envelope.wakes(at: now) else { return false }
        last = PushSpan(first: first.first, last: position, expiresAt: envelope.expiresAt)
        return true
    }

    /// The envelopes that the wake is for. If none of the newest envelopes wakes, the wake is for all envelopes before them.
    package var span: PushSpan {
        if let last { return last }
        guard let oldest, oldest > first.first else { return first }
        return PushSpan(first: first.first, last: oldest - 1, expiresAt: first.expiresAt)
    }
}
