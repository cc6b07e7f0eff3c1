/// Whose updates a device may be given.
struct UpdateScope: Equatable, Sendable {
    /// Nil: it is not registered.
    var identity: DeviceIdentity?
    /// Who is signed in, as the server has it.
    var user: String?
    /// Whether the server did not answer yet to what was said of the user.
    var isUserPending: Bool
}
