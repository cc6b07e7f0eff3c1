/// Decides which failures are reported to the user, and which are logged as warnings: the first one, and each that differs from
/// the one before. Failures differ for the user by their kind, and in the log also by their reason.
struct FailureNotes {
    private var notified: UpdateFailure.Kind?
    private var logged: UpdateFailure?
    private var quietUntil: ContinuousClock.Instant?
    private var isInMaintenance = false

    /// The time after a maintenance in which an unreachable server is not reported.
    static let quietAfterMaintenance = Duration.seconds(300)

    mutating func succeeded() { (notified, logged) = (nil, nil) }

    /// Whether the user is notified.
    mutating func failed(_ kind: UpdateFailure.Kind, at now: ContinuousClock.Instant) -> Bool {
        if isQuiet(kind, at: now) { return false }
        defer { notified = kind }
        return notified != kind
    }

    /// Whether a failure is logged as a warning.
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
