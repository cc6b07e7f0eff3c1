package import CarillonCore

/// Rows of devices, their channels and watches.
package protocol DeviceRows: Sendable {
    /// Adds devices with unknown credentials. Each has the serial number behind the last one, as devices of earlier versions do.
    func addDevices(_ count: Int, to app: AppSerial, in store: any Store) async throws
    /// Returns how many devices have this serial number or a smaller one.
    func countDevices(upTo serial: DeviceSerial, in store: any Store) async throws -> Int
    /// Sets the user of all devices, without the effects of a change of the user. Nil: none has a user.
    func setUser(_ user: String?, in store: any Store) async throws
    /// Sets the badge of all devices.
    func setBadges(_ badge: Int, in store: any Store) async throws
    func badges(in store: any Store) async throws -> [Int]
    /// Sets the time of each device's status to 1970.
    func ageStatuses(in store: any Store) async throws
    /// From now on all devices are seen at this time whenever one is removed.
    func seeDevices(at moment: Timestamp, whenOneIsRemovedFrom store: any Store) async throws
    /// Ends that, and sets the time at which each device was seen to 1970.
    func stopSeeingDevices(in store: any Store) async throws
    /// Returns all channels in the order of their serial numbers.
    func channels(in store: any Store) async throws -> [ChannelSerial]
    /// Returns for all channels, in the same order, whether the user of the device owns them: 0 no, 1 yes, 2 a former user does.
    func ownersOfChannels(in store: any Store) async throws -> [Int]
    /// Damages a watch, so that it cannot be read.
    func damageWatch(_ watch: WatchSerial, in store: any Store) async throws
    /// Returns how many callbacks about the end of a watch wait for this reason.
    func countDisconnectCallbacks(because reason: String, in store: any Store) async throws -> Int
}
