/// The device that this install is to the server, from its registration to its end.
struct DeviceRegistration: Sendable {
    var identity: DeviceIdentity?
    /// There was an identity and the server does not know it any more, or it refused to give one. A new one is asked
    /// for when a channel is wanted, not before.
    var awaitsDemand: Bool
    /// The secret of a registration until the server accepts its credential for the first time.
    var secret: String?
    /// The server refuses the credential of the registration: the registration is repeated with its secret.
    var mustRepeat = false
    /// A backup brought the store here.
    private(set) var isRestored: Bool
    /// The secret of the next credential, of a renewal that is under way.
    var renewal: String?

    init(restoring stored: StoredState) {
        identity = stored.identity
        awaitsDemand = stored.identityWasLost
        secret = stored.registration
        isRestored = stored.isRestored
        renewal = stored.renewal
    }

    mutating func registered(as identity: DeviceIdentity) {
        self.identity = identity
        (awaitsDemand, mustRepeat) = (false, false)
        renewalEnded()
    }

    /// There is no device any more.
    mutating func lost() {
        identity = nil
        (awaitsDemand, mustRepeat) = (true, false)
        renewalEnded()
    }

    /// The install keeps its credential, or has the next one.
    mutating func renewalEnded() { (isRestored, renewal) = (false, nil) }
}
