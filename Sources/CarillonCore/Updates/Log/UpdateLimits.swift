package struct UpdateLimits: Equatable, Sendable {
    /// The largest number of live updates of an app.
    package var live: Int
    /// The largest number of live updates whose audience no index finds.
    package var unindexed: Int
    /// The largest total size of the audiences of all live updates that are not paused, in bytes.
    package var audienceBytes: Int
    /// The number of ended updates of an app whose completions are kept. Beyond it the oldest are forgotten.
    package var ended: Int
    /// The longest time for which they are kept, in seconds.
    package var endedSeconds: Int64

    package init(
        live: Int = 2000, unindexed: Int = 200, audienceBytes: Int = 8 << 20, ended: Int = 10_000,
        endedSeconds: Int64 = 30 * 86_400
    ) {
        self.live = live
        self.unindexed = unindexed
        self.audienceBytes = audienceBytes
        self.ended = ended
        self.endedSeconds = endedSeconds
    }

    /// The valid TTLs of an update, in seconds.
    package static let ttlSeconds: ClosedRange<Int64> = 60...(366 * 86_400)
    /// The TTL of an update without one.
    package static let standardTTLSeconds: Int64 = 30 * 86_400
    package static let orderKeyBytes = 128
    package static let audienceBytes = 49_152
    package static let audienceConstants = 5000
    /// The cost limit of an audience for one device, in units of the language.
    package static let audienceCost = 1000
}
