package import CarillonWire

package protocol AppStore: Sendable {
    /// Answers nil when an app of this name exists.
    func createApp(_ id: AppID, at now: Timestamp) async throws -> App?
    func app(_ id: AppID) async throws -> App?
    func apps() async throws -> [App]
    /// Removes the app with its keys, devices, channels and inboxes, and answers with what was removed, so that
    /// live sessions can be ended; nil when there is no such app. Waiting messages end as ``Outcome/gone``.
    func deleteApp(_ id: AppID, at now: Timestamp) async throws -> RemovedDevices?
}

/// What went away with an app or a device.
package struct RemovedDevices: Equatable, Sendable {
    package var devices: [DeviceSerial]
    package var channels: [ChannelSerial]

    package init(devices: [DeviceSerial], channels: [ChannelSerial]) {
        self.devices = devices
        self.channels = channels
    }
}
