/// The user of the device.
struct SessionUser: Sendable {
    /// What the server was not notified yet of the user.
    var pending: UserChange?
    /// The user that the server named.
    var accepted: String?
    var numbers: UserNumbers
    var reporting: SessionReporting

    init(restoring stored: StoredState, _ backOff: PushClient.BackOff) {
        pending = stored.user
        accepted = stored.acceptedUser
        numbers = UserNumbers(isPending: stored.user != nil)
        reporting = SessionReporting(backOff)
    }

    /// Whether the app named another user, and the server has not answered.
    var isOtherPending: Bool { pending?.mayDiffer(from: accepted) == true }
}
