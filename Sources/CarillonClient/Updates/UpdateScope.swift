/// The device and user whose updates can be received.
struct UpdateScope: Equatable, Sendable {
    /// The device; nil if it is not registered.
    var identity: DeviceIdentity?
    /// The user of the device, as the server reported it.
    var user: String?
    /// Whether the server has not yet answered the last change of the user.
    var isUserPending: Bool
}
