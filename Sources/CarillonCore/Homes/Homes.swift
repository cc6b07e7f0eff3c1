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

    /// Returns the home of a device that is not read yet.
    package func home(of name: DeviceName) -> Home { only }

    /// The home of the device whose envelope it is.
    package func home(of id: MessageID) -> Home { home(of: Shard(of: id.position)) }

    private func home(of shard: Shard) -> Home { only }

    /// Connects a device that sent its credential. See ``Home/arrival(of:as:_:if:)``.
    package func arrival(
        of name: DeviceName, as session: any LiveSession, _ load: InboxLoad, if isRight: (Device) -> Bool
    ) async throws -> Home.Arrived? {
        try await home(of: name).arrival(of: name, as: session, load, if: isRight)
    }

    /// The shards whose home is in this process.
    package var shards: ShardSet { .all }

    /// Those that are in this process.
    package var here: [Home] { [only] }
}
