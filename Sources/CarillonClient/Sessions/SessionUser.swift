/// The user of the device.
struct SessionUser: Sendable {
    /// What the server was not notified yet of the user.
    var pending: UserClaim?
    /// The user that the server named.
    var taken: String?
    var numbers: UserNumbers
    var reporting: SessionReporting

    init(restoring stored: StoredState, _ backOff: PushClient.BackOff) {
        pending = stored.user
        taken = stored.takenUser
        numbers = UserNumbers(isPending: stored.user != nil)
        reporting = SessionReporting(backOff)
    }

    /// Whether the app named another user, and the server has not answered.
    var isOtherPending: Bool { pending?.mayDiffer(from: taken) == true }
}
