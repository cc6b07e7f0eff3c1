package import CarillonWire

package protocol AppStore: Sendable {
    /// Answers nil when an app of this name exists.
    func createApp(_ id: AppID, at now: Timestamp) async throws -> App?
    func app(_ id: AppID) async throws -> App?
    func apps() async throws -> [App]
    /// Removes the app with its keys, for everybody to see; its devices, channels and inboxes follow by
    /// ``continueDeletions(at:limit:)``. Answers false when there is no such app.
    func deleteApp(_ id: AppID, at now: Timestamp) async throws -> Bool
    /// Does the next part of what deletions of apps and devices left to be done, about so many rows of it: devices of apps that
    /// are gone go with their channels, and what waited for devices that are gone ends as ``Outcome/gone``.
    func continueDeletions(at now: Timestamp, limit: Int) async throws -> DeletionStep
}

package struct DeletionStep: Equatable, Sendable {
    /// Whose sessions are to be ended.
    package var removed: RemovedDevices
    /// Whether nothing is left to be done.
    package var isDone: Bool

    package init(removed: RemovedDevices = .init(), isDone: Bool) {
        self.removed = removed
        self.isDone = isDone
    }
}

/// What went away with an app or a device.
package struct RemovedDevices: Equatable, Sendable {
    package var devices: [DeviceSerial]
    package var channels: [ChannelSerial]

    package init(devices: [DeviceSerial] = [], channels: [ChannelSerial] = []) {
        self.devices = devices
        self.channels = channels
    }
}
