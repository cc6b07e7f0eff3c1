package import CarillonWire

/// Where every decision about a device is made: its inbox, and who is connected.
package struct Home: Sendable {
    package let inbox: Inbox
    package let sessions: LiveSessions

    package init(inbox: Inbox, sessions: LiveSessions) {
        self.inbox = inbox
        self.sessions = sessions
    }
}

/// The one way from a door to the home of a device. On one machine there is one home, and every shard is its own.
package struct Homes: Sendable {
    private let only: Home

    package init(only: Home) { self.only = only }

    package func home(of device: DeviceSerial) -> Home { home(of: Shard(of: device)) }

    /// The home of the device whose envelope it is.
    package func home(of id: MessageID) -> Home { home(of: Shard(of: id.position)) }

    private func home(of shard: Shard) -> Home { only }

    /// Lets in a device that says who it is: makes the connection its session, and reads what waits for it. Nil when there is
    /// none of the name, or it is not the one.
    package func arrival(
        of name: DeviceName, as session: any LiveSession, _ load: DeliveryMachine.Load,
        if isRight: @escaping @Sendable (Device) -> Bool
    ) async throws -> (device: Device, read: InboxRead, said: SaidRevisions)? {
        try await only.inbox.arrival(of: name, load) { device in
            guard isRight(device) else { return false }
            only.sessions.join(session, device: device.serial)
            return true
        }
    }

    /// The shards whose home is in this process.
    package var shards: ShardSet { .all }

    /// Those that are in this process.
    package var here: [Home] { [only] }
}
