/// Which failures the user was told of: the same again is not told, until something worked or it became another.
struct FailureNotes {
    private var told: UpdateFailure.Kind?
    private var quietUntil: ContinuousClock.Instant?
    private var isInMaintenance = false

    /// After a maintenance the server may need a while.
    static let quietAfterMaintenance = Duration.seconds(300)

    mutating func succeeded() { told = nil }

    /// Whether the user is to be told.
    mutating func failed(_ kind: UpdateFailure.Kind, at now: ContinuousClock.Instant) -> Bool {
        if kind == .unreachable, isInMaintenance || quietUntil.map({ now < $0 }) ?? false { return false }
        defer { told = kind }
        return told != kind
    }

    mutating func maintenanceBegan() { isInMaintenance = true }

    mutating func maintenanceEnded(at now: ContinuousClock.Instant) {
        guard isInMaintenance else { return }
        isInMaintenance = false
        quietUntil = now + Self.quietAfterMaintenance
    }
}
