package import CarillonWire

/// Finds the home of a device. A server has one home with all shards, so the device is not inspected.
package struct Homes: Sendable {
    private let only: any LocalHome

    package init(only home: any LocalHome) { only = home }

    package func home(of device: DeviceSerial) -> any LocalHome { only }

    /// Returns the home of a device that is not read yet.
    package func home(of name: DeviceName) -> any LocalHome { only }

    /// Returns the home of the device that owns the envelope with this id.
    package func home(of id: MessageID) -> any LocalHome { only }

    /// Connects a device that sent its credential. See ``LocalHome/arrival(of:as:_:if:)``.
    package func arrival(
        of name: DeviceName, as session: any LiveSession, _ load: InboxLoad, if isRight: (Device) -> Bool
    ) async throws -> ArrivedDevice? {
        try await home(of: name).arrival(of: name, as: session, load, if: isRight)
    }

    /// The shards whose home is in this process.
    package var shards: ShardSet { only.shards }

    /// The homes in this process.
    package var here: [any LocalHome] { [only] }

    /// Returns the present epoch of positions at the home of the device. No position of the device has a later one.
    package func epoch(of device: DeviceSerial) -> Int64 { home(of: device).epoch }

    /// Whether the device has a session. A waiting poll is not a session.
    package func isConnected(_ device: DeviceSerial) -> Bool { home(of: device).isConnected(device) }

    /// Ends the sessions of these devices, and the polls that wait for their inboxes.
    package func end(_ devices: [DeviceSerial], because reason: SessionEnd) {
        for device in devices { home(of: device).end([device], because: reason) }
    }
}
