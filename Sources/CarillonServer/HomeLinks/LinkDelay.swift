import CarillonCore

/// The delay of a link in one direction.
struct LinkDelay: Sendable {
    private let random: RandomSource
    private let longest: UInt64

    /// - Parameter longest: In milliseconds. Each delay is between 0 and this time.
    init(random: RandomSource, longest: Int) {
        self.random = random
        self.longest = UInt64(longest) * 1000
    }

    private func next() -> Duration { .microseconds(Int64(random.next() % (longest + 1))) }

    /// Returns the time of arrival for data that is sent now.
    func due() -> ContinuousClock.Instant { .now + next() }

    /// Returns after a delay, or when the task is cancelled.
    func pass() async { try? await Task.sleep(for: next()) }
}
