import CarillonWire

/// What the last run left behind.
struct StoredState: Sendable {
    var identity: DeviceIdentity?
    /// There was an identity, and the server does not know it any more.
    var identityWasLost = false
    var channels: [String: ChannelMachine] = [:]
    var withdrawals: Set<ChannelID> = []
}
