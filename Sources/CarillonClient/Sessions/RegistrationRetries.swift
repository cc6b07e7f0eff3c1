import CarillonWire

/// The channels of a live connection that the server could not register now. They are registered again one after another.
///
/// - *none waits*: left by the refusal of a channel, to *waiting*.
/// - *waiting*: until a time. Left to *under way* when the time comes.
/// - *under way*: one channel was registered again. Left by its refusal to *waiting*, for longer than before, and by any other
///   answer to the next channel.
struct RegistrationRetries: Sendable {
    /// When the next channel is registered again; nil if none waits, or one is under way.
    private(set) var dueAt: ContinuousClock.Instant?
    private var waiting: Set<ChannelID> = []
    private var underWay: ChannelID?
    private var schedule: ClientReconnectSchedule

    init(_ backOff: PushClient.BackOff) { schedule = ClientReconnectSchedule(backOff) }

    /// The server could not register a channel. Refusals of registrations that were sent together count as one failure.
    ///
    /// - Parameter hint: How long to wait at least.
    mutating func refused(
        _ channel: ChannelID, retryAfter hint: Duration, at now: ContinuousClock.Instant, random: Double
    ) {
        waiting.insert(channel)
        if let underWay, underWay != channel { return }
        underWay = nil
        var wait = schedule.delay(after: hint, random: random)
        if dueAt == nil { wait = max(wait, schedule.failed(random: random)) }
        dueAt = max(dueAt ?? now, now + wait)
    }

    /// The server registered a channel, or refused it for good.
    mutating func answered(_ channel: ChannelID, isRegistered: Bool, at now: ContinuousClock.Instant) {
        waiting.remove(channel)
        if isRegistered { schedule.succeeded() }
        guard underWay == channel else { return }
        underWay = nil
        if !waiting.isEmpty { dueAt = now }
    }

    /// Returns the channel to register again now.
    ///
    /// - Parameter wanted: The channels that still connect.
    mutating func timePassed(to now: ContinuousClock.Instant, wanted: Set<ChannelID>) -> ChannelID? {
        guard let dueAt, dueAt <= now else { return nil }
        self.dueAt = nil
        waiting.formIntersection(wanted)
        underWay = waiting.min { $0.description < $1.description }
        if let underWay { waiting.remove(underWay) }
        return underWay
    }

    /// All channels are registered anew, on this connection or on the next one.
    mutating func reset() {
        dueAt = nil
        waiting = []
        underWay = nil
    }
}
