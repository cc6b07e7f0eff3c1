package import CarillonWire

/// Keeps apps.
///
/// Each change is one transaction: a concurrent call sees all of it or nothing. Every method throws ``StoreFault`` if the store cannot be
/// read or written; a change that throws is not made.
package protocol AppStore: Sendable {
    /// Creates an app; nil if an app of this name exists. Of concurrent calls with one name one creates it.
    func createApp(_ id: AppID, at now: Timestamp) async throws -> App?
    /// Returns the app of a name; nil after its deletion.
    func app(_ id: AppID) async throws -> App?
    /// Returns all apps that are not deleted, in the order of their names.
    func apps() async throws -> [App]
    /// Removes the app with its keys: from then on no call finds it, its devices or its channels, and its name is free. The rows of its
    /// devices, channels and inboxes follow by ``continueDeletions(at:limit:)``. Returns false if there is no such app, as for the later
    /// of two calls.
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
