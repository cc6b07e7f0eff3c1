/// The timer of the earliest deadline.
struct Alarm<Timer> {
    private var present: (at: ContinuousClock.Instant, timer: Timer)?

    /// Starts a timer for a deadline, and returns the timer that it replaces. A timer that ends before the deadline stays: the
    /// next timer is set when it ends.
    mutating func set(for deadline: ContinuousClock.Instant, _ start: () -> Timer) -> Timer? {
        if let present, present.at <= deadline { return nil }
        defer { present = (deadline, start()) }
        return present?.timer
    }

    /// Forgets the timer, and returns it.
    mutating func take() -> Timer? { present.take()?.timer }
}
