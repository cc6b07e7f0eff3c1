/// The delay that polling devices are requested to wait. A server that takes long to handle polls is overloaded.
package struct PollPace: Sendable {
    /// The average duration of the last polls, in seconds.
    private var mean = 0.0

    package init() {}

    /// Notes the duration of a handled poll, without the time in which it waited for data.
    package mutating func note(seconds: Double) { mean += (seconds - mean) / Self.polls }

    /// Nil if no delay is needed.
    package var retryAfterSeconds: Int? {
        mean < Self.longest ? nil : min(Int(mean * Self.stretch), Self.mostSeconds)
    }

    private static let polls = 64.0
    private static let longest = 0.25
    private static let stretch = 40.0
    private static let mostSeconds = 300
}
