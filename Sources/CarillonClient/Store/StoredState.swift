import CarillonWire

/// What the last run left behind.
struct StoredState: Sendable {
    var identity: DeviceIdentity?
    /// There was an identity, and the server does not know it any more.
    var identityWasLost = false
    var channels: [String: ChannelMachine] = [:]
    var withdrawals: Set<ChannelID> = []
    var buffers: [String: BufferUse] = [:]
    var reports: [MessageAnswer] = []
    /// The secret of a registration whose credential the server has not accepted yet.
    var registration: String?
    var serverID: String?
    /// The address of the identity's server, when it is not the configured one.
    var formerServer: String?
    /// A backup brought the store here.
    var isRestored = false
    /// The secret of a renewal that is not over.
    var renewal: String?
    var deregistrations: [Deregistration] = []
    var namedServers: [NamedServer] = []
    var device = PushDeviceMachine()
    /// What the server was not notified of the user.
    var user: UserClaim?
    /// Whose the server said the device is.
    var takenUser: String?
}
