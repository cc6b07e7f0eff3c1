/// The devices that were signed out, and that the server may not know of yet. One is deleted at a time.
struct Deregistrations: Sendable {
    private(set) var waiting: [Deregistration]
    /// Whether a device is being deleted, by the call that signed out or by a task beside the live connection.
    private(set) var isUnderWay = false
    /// The time of the next attempt after a failure. Until then the client does its other work.
    private var retryAt: ContinuousClock.Instant?
    private var schedule: ClientReconnectSchedule

    init(_ waiting: [Deregistration], _ backOff: PushClient.BackOff) {
        self.waiting = waiting
        schedule = ClientReconnectSchedule(backOff)
    }

    /// The one that is sent now; nil if none is, or one is under way.
    var next: Deregistration? { isUnderWay || retryAt != nil ? nil : waiting.first }

    /// The time of the next attempt after a failure; nil if there is none.
    var dueAt: ContinuousClock.Instant? { isUnderWay || waiting.isEmpty ? nil : retryAt }

    /// A run begins: an attempt waits no more.
    mutating func started() { retryAt = nil }

    /// The app signed out, and deletes the device itself.
    mutating func signedOut(_ deregistration: Deregistration) {
        waiting.append(deregistration)
        isUnderWay = true
    }

    /// Begins with the next one; nil if there is none, or one is under way.
    mutating func begin() -> Deregistration? {
        guard let next else { return nil }
        isUnderWay = true
        return next
    }

    mutating func succeeded(_ deregistration: Deregistration) {
        waiting.removeAll { $0 == deregistration }
        (isUnderWay, retryAt) = (false, nil)
        schedule.succeeded()
    }

    /// An attempt ended without a result while the client is stopped.
    mutating func interrupted() { isUnderWay = false }

    mutating func failed(
        _ deregistration: Deregistration, retryAfter: Duration?, at now: ContinuousClock.Instant, random: Double
    ) {
        isUnderWay = false
        retryAt = now + schedule.failed(hint: retryAfter, random: random)
        // Another one is sent first.
        if let place = waiting.firstIndex(of: deregistration) { waiting.append(waiting.remove(at: place)) }
    }

    /// Returns whether the one that failed is due.
    @discardableResult mutating func endWait(at now: ContinuousClock.Instant) -> Bool {
        guard let dueAt, dueAt <= now else { return false }
        retryAt = nil
        return true
    }
}
