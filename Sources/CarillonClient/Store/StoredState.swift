import CarillonWire

/// The state that the last run stored.
struct StoredState: Sendable {
    var identity: DeviceIdentity?
    /// Whether the device had an identity that the server does not know any more.
    var identityWasLost = false
    var channels: [String: ChannelMachine] = [:]
    var withdrawals: Set<ChannelID> = []
    var buffers: [String: BufferUse] = [:]
    var reports: [MessageAnswer] = []
    /// The secret of a registration whose credential the server has not accepted yet.
    var registration: String?
    var serverID: String?
    /// The address of the identity's server, if it is not the configured one.
    var formerServer: String?
    /// Whether the store was restored from a backup.
    var isRestored = false
    /// The secret of a renewal that is not completed.
    var renewal: String?
    var deregistrations: [Deregistration] = []
    var namedServers: [NamedServer] = []
    var device = PushDeviceMachine()
    /// The change of the user that was not reported to the server yet.
    var user: UserChange?
    /// The user of the device that the server reported.
    var acceptedUser: String?
}
