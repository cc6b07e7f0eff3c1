package import CarillonWire

/// The apps. Methods that write are atomic and durable, as ``Store`` describes.
package protocol AppStore: Sendable {
    /// Stores an app. Returns nil if an app of this name exists. Of calls at once with one name, one stores the app.
    func createApp(_ id: AppID, at now: Timestamp) async throws -> App?
    /// Returns the app of a name; nil if there is none, or if it was deleted.
    func app(_ id: AppID) async throws -> App?
    /// Returns all apps in the order of their names, without deleted ones.
    func apps() async throws -> [App]
    /// Removes an app with its keys and documents in one transaction. Returns false if there is no such app; of calls at once, one
    /// returns true.
    ///
    /// From then on nobody finds the app, its devices and its channels, nothing is stored for them, and the name is free. Their rows and
    /// inboxes are removed by ``continueDeletions(at:limit:)``.
    func deleteApp(_ id: AppID, at now: Timestamp) async throws -> Bool
    /// Does the next part of the deletions of apps and devices, about `limit` rows, in one transaction. A call after a crash continues
    /// where the last committed one ended.
    ///
    /// Devices of deleted apps are removed with their channels, and messages of deleted devices end as ``Outcome/gone``.
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
