import CarillonWire

/// The channels of the app, and the work that each of them waits for.
struct SessionChannels: Sendable {
    private(set) var machines: [String: ChannelMachine]
    /// The channel that the server means by an id.
    private(set) var identifiers: [ChannelID: String] = [:]
    /// The channels that may exist on the server and that nobody wants.
    var withdrawals: Set<ChannelID>
    var connectDeadlines: [String: ContinuousClock.Instant] = [:]
    /// Of the channels whose tokens the app wants delivered.
    var tokenDeliveries: [String: TokenDelivery] = [:]
    /// The channels that the server could not register, on the live connection.
    var registrationRetries: RegistrationRetries
    /// When to unregister again what the server could not unregister.
    var unregistrationRetryAt: ContinuousClock.Instant?

    init(restoring stored: StoredState, _ backOff: PushClient.BackOff) {
        machines = stored.channels
        withdrawals = stored.withdrawals
        registrationRetries = RegistrationRetries(backOff)
        for (identifier, channel) in stored.channels {
            if let id = channel.channelID { identifiers[id] = identifier }
        }
    }

    subscript(_ identifier: String) -> ChannelMachine? {
        get { machines[identifier] }
        set {
            if let former = machines[identifier]?.channelID { identifiers[former] = nil }
            machines[identifier] = newValue
            if let id = newValue?.channelID { identifiers[id] = identifier }
        }
    }

    var areConnecting: Bool { machines.values.contains { $0.state == .connecting } }

    /// The ids of the channels in a state.
    func ids(in state: ChannelState) -> [ChannelID] {
        machines.values.compactMap { $0.state == state ? $0.channelID : nil }
    }

    mutating func remove(_ identifier: String) {
        self[identifier] = nil
        connectDeadlines[identifier] = nil
    }

    /// All channels are registered and unregistered anew on the next connection.
    mutating func connectionEnded() {
        registrationRetries.reset()
        unregistrationRetryAt = nil
    }
}
