package import CarillonWire

/// Stores the apps. Methods that write are atomic and durable, as ``Store`` describes.
package protocol AppStore: Sendable {
    /// Stores an app. Returns nil if an app of this name exists. Of concurrent calls with one name, one stores the app.
    func createApp(_ id: AppID, at now: Timestamp) async throws -> App?
    /// Returns the app of a name; nil if no app has the name, or if the app was deleted.
    func app(_ id: AppID) async throws -> App?
    /// Returns all apps in the order of their names, without deleted ones.
    func apps() async throws -> [App]
    /// Removes an app with its keys and documents in one transaction. Returns false if there is no such app. Of concurrent calls,
    /// one returns true.
    ///
    /// After that, the app, its devices and its channels are not found, nothing is stored for them, and the name is free. Their
    /// rows and inboxes are removed by ``DeletionStore/continueDeletions(at:limit:)``.
    func deleteApp(_ id: AppID, at now: Timestamp) async throws -> Bool
}

/// The devices and channels that were removed with an app or a device.
package struct RemovedDevices: Equatable, Sendable {
    package var devices: [DeviceSerial]
    package var channels: [ChannelSerial]

    package init(devices: [DeviceSerial] = [], channels: [ChannelSerial] = []) {
        self.devices = devices
        self.channels = channels
    }
}
