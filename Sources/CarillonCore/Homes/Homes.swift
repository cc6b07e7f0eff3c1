package import CarillonWire

/// Finds the home of a device. A server has one home with all shards, so the device is not inspected.
package struct Homes: Sendable {
    private let only: any LocalHome
    private let link: any Home

    package init(only home: any LocalHome & Home) { self.init(only: home, reachedBy: home) }

    /// - Parameter link: How connections reach the home: the home itself, or a link to it.
    package init(only home: any LocalHome, reachedBy link: any Home) {
        only = home
        self.link = link
    }

    package func home(of device: DeviceSerial) -> any LocalHome { only }

    /// Returns the home of the device that owns the envelope with this id.
    package func home(of id: MessageID) -> any LocalHome { only }

    // MARK: Connections

    /// Returns the home of a device as its connection uses it.
    package func connectionHome(of device: DeviceSerial) -> any Home { link }

    /// Returns the home of a device that is not read yet, as its connection uses it.
    package func connectionHome(of name: DeviceName) -> any Home { link }

    /// Connects a device that sent its proof. See ``Home/arrive(_:_:_:speaking:as:)``. If the outcome is unknown, the session leaves.
    package func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: InboxLoad, speaking version: Int, as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        let home = connectionHome(of: name)
        do throws(HomeFault) {
            return try await home.arrive(name, proof, load, speaking: version, as: session)
        } catch {
            // Otherwise a session without a connection could stay, take messages of TTL 0, and postpone wakes.
            if error == .outcomeUnknown { home.leave(session, of: name) }
            throw error
        }
    }

    // MARK: All homes

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
