package import CarillonWire

/// Keeps who offers which services, and what was asked of whom.
package protocol ServiceStore: Sendable {
    /// In place of what the device said before. Answers whether that was something else; nil when there is no such device.
    func putServiceProfile(_ profile: ServiceProvider.Profile, of device: DeviceSerial) async throws -> Bool?
    /// Answers whether there was one.
    func removeServiceProfile(of device: DeviceSerial) async throws -> Bool
    /// Those that a device may call and that fit, in its app and in those of its app's realm, without itself: the servers, and the devices
    /// of its user; for a server the device that is named, and those of the user who is. Nil when it belongs to no user, and is no server.
    func serviceProviders(for caller: DeviceSerial, _ query: ServiceQuery, limit: Int) async throws -> ServiceReach?
    func serviceIcon(of provider: DeviceSerial) async throws -> ServiceIcon?
    /// Those that find a device which provides something, or would if they were its user's; without itself.
    func servicePeers(of provider: DeviceSerial, limit: Int) async throws -> [DeviceSerial]

    /// Makes a device of an app a server, in place of where it was before; nil: it is none any more.
    ///
    /// - Returns: False when there is no such device, or it was no server; nil when the app has as many as it may.
    func setClusterPlace(_ place: ClusterPlace?, of device: DeviceID, app: AppSerial) async throws -> Bool?
    func cluster(of app: AppSerial) async throws -> [(device: DeviceID, place: ClusterPlace)]
    /// Apps of one realm share their users; nil: the app has its own.
    ///
    /// - Returns: False when there is no such app.
    func setRealm(_ realm: String?, of app: AppSerial) async throws -> Bool
    func realm(of app: AppSerial) async throws -> String?

    func serviceRequest(_ id: ServiceRequestID) async throws -> ServiceRequest?
    /// The request of an id, where it was made before; otherwise whom a device may call.
    func asking(_ id: ServiceRequestID, by caller: DeviceSerial, _ query: ServiceQuery) async throws -> RequestBeginning
    /// How many of a device are unfinished.
    func unfinishedRequestCount(of consumer: DeviceSerial) async throws -> Int
    /// Some that are unfinished of a device to another.
    func unfinishedRequests(of consumer: DeviceSerial, to provider: DeviceSerial, limit: Int) async throws
        -> [ServiceRequest]
    /// Its consumer took it back before it was delivered. Its id is remembered for ``ServiceRequest/undeliveredSeconds``, within
    /// ``ServiceRequest/undeliveredOfConsumer`` for the consumer. Answers false when it was finished.
    func cancelRequest(_ request: RequestSerial, at now: Timestamp) async throws -> Bool
    /// Some that are to be ended: their deadline came, or their provider went.
    func dueRequests(at now: Timestamp, limit: Int) async throws -> [ServiceRequest]
    /// Forgets some that were finished long enough. Answers how many.
    func forgetRequests(by retention: RetentionTime, limit: Int) async throws -> Int
}
