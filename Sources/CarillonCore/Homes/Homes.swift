package import CarillonWire

/// Makes every decision about its devices. It owns their inboxes and their connections.
package struct Home: Sendable {
    package let inbox: Inbox
    package let sessions: LiveSessions

    package init(inbox: Inbox, sessions: LiveSessions) {
        self.inbox = inbox
        self.sessions = sessions
    }
}

/// Returns the home of a device. Nothing reaches inboxes and connections in another way.
///
/// On one machine there is one home, which owns all shards.
package struct Homes: Sendable {
    private let only: Home

    package init(only: Home) { self.only = only }

    package func home(of device: DeviceSerial) -> Home { home(of: Shard(of: device)) }

    /// Returns the home of a device that is not read yet.
    package func home(of name: DeviceName) -> Home { only }

    /// Returns the home of the device that owns the envelope with this id.
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

    /// The homes in this process.
    package var here: [Home] { [only] }

    /// Returns the present epoch of positions at the home of the device. No position of the device has a later one.
    package func epoch(of device: DeviceSerial) -> Int64 { home(of: device).inbox.epoch }

    /// Whether the device has a session. A waiting poll is not a session.
    package func isConnected(_ device: DeviceSerial) -> Bool {
        home(of: device).sessions.session(of: device) != nil
    }

    /// Ends the sessions of these devices, and the polls that wait for their inboxes.
    package func end(_ devices: [DeviceSerial], because reason: SessionEnd) {
        for device in devices { home(of: device).sessions.end([device], because: reason) }
    }
}
