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
    /// inboxes are removed by ``DeletionStore/continueDeletions(at:limit:)``.
    func deleteApp(_ id: AppID, at now: Timestamp) async throws -> Bool
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
