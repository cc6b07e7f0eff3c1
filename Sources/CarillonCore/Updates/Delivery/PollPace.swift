/// For how long devices that poll are asked to stay away: a server that takes long for what they say has more to do than it can.
package struct PollPace: Sendable {
    /// Of the last polls, in seconds.
    private var mean = 0.0

    package init() {}

    /// One was heard; the wait for something to give is no part of it.
    package mutating func note(seconds: Double) { mean += (seconds - mean) / Self.polls }

    /// Nil while there is no reason to stay away.
    package var retryAfterSeconds: Int? {
        mean < Self.longest ? nil : min(Int(mean * Self.stretch), Self.mostSeconds)
    }

    private static let polls = 64.0
    private static let longest = 0.25
    private static let stretch = 40.0
    private static let mostSeconds = 300
}
