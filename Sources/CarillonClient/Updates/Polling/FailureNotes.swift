/// Decides which failures are reported to the user, and which are warnings in the log: the first, and each that differs from the one before.
/// Failures of different kinds differ for the user, and failures with different reasons in the log.
struct FailureNotes {
    private var notified: UpdateFailure.Kind?
    private var logged: UpdateFailure?
    private var quietUntil: ContinuousClock.Instant?
    private var isInMaintenance = false

    /// After a maintenance the server may need a while.
    static let quietAfterMaintenance = Duration.seconds(300)

    mutating func succeeded() { (notified, logged) = (nil, nil) }

    /// Whether the user is to be notified.
    mutating func failed(_ kind: UpdateFailure.Kind, at now: ContinuousClock.Instant) -> Bool {
        if isQuiet(kind, at: now) { return false }
        defer { notified = kind }
        return notified != kind
    }

    /// Returns whether a failure is a warning in the log.
    mutating func isNew(_ failure: UpdateFailure, at now: ContinuousClock.Instant) -> Bool {
        if isQuiet(failure.kind, at: now) { return false }
        defer { logged = failure }
        return logged != failure
    }

    private func isQuiet(_ kind: UpdateFailure.Kind, at now: ContinuousClock.Instant) -> Bool {
        kind == .unreachable && (isInMaintenance || quietUntil.map { now < $0 } ?? false)
    }

    mutating func maintenanceBegan() { isInMaintenance = true }

    mutating func maintenanceEnded(at now: ContinuousClock.Instant) {
        guard isInMaintenance else { return }
        isInMaintenance = false
        quietUntil = now + Self.quietAfterMaintenance
    }
}
