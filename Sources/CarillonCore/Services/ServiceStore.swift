package import CarillonWire

/// Stores the services that devices offer to each other, and the requests of devices.
///
/// A request changes by ``RequestStep``, in the transaction that appends the envelope of the step (``InboxStore/commit(_:)``). A
/// step that does not fit the state of the request has no effect, and its envelope is not appended.
///
/// A change of a device's user and the deletion of a device remove the device's profile and end its requests, in their own
/// transactions:
///
/// | Change | Requests of the device | Requests to the device |
/// |---|---|---|
/// | another user | are due, and abandoned | are due, with ``ErrorCode/userMismatch`` |
/// | deletion; end of a backend device | are removed | are due, with ``ErrorCode/applicationNotFound`` |
///
/// A request belongs to the shard of its provider. Methods with a set of shards return and change nothing of other shards.
///
/// Methods that write are atomic and durable, as ``Store`` describes.
package protocol ServiceStore: Sendable {
    /// Stores the services that a device offers, and replaces the whole present profile, in one transaction.
    ///
    /// - Returns: Whether other devices see a change; a change of only the revision is none. Nil if there is no such device.
    func putServiceProfile(_ profile: ServiceProvider.Profile, of device: DeviceSerial) async throws -> Bool?
    /// Removes the services that a device offers. Returns whether there were any. Requests to the device continue.
    func removeServiceProfile(of device: DeviceSerial) async throws -> Bool
    /// Returns up to `limit` providers that a device can call and that match the whole query, in one read, without the device
    /// itself.
    ///
    /// A user's device finds the backend devices of its app and of its app's realm (``AppDocument/Kind/realm``), and the
    /// providers of its user there. A backend device finds the other backend devices, the devices of the user in the query, and
    /// any user's device that the query names.
    ///
    /// - Returns: Nil if the device has no user and is no backend device, or if the device or its app was deleted.
    func serviceProviders(for caller: DeviceSerial, _ query: ServiceQuery, limit: Int) async throws -> ServiceReach?
    /// Returns the icon of a provider with its bytes; nil if the provider has no icon.
    func serviceIcon(of provider: DeviceSerial) async throws -> ServiceIcon?
    /// Returns up to `limit` other devices of a provider's user, in its app and its app's realm. Empty if the device offers no
    /// service or has no user.
    func servicePeers(of provider: DeviceSerial, limit: Int) async throws -> [DeviceSerial]

    /// Makes a device of an app a backend device, or changes the place of a backend device. A nil place makes it an ordinary
    /// device again, and ends its requests as its deletion does. One transaction; concurrent calls do not exceed
    /// ``ClusterPlace/mostOfApp``.
    ///
    /// - Returns: False if the app has no such device, or, for a nil place, no such backend device. Nil if the app has reached
    ///   the limit.
    func setClusterPlace(_ place: ClusterPlace?, of device: DeviceID, app: AppSerial) async throws -> Bool?
    /// Returns the backend devices of an app, ordered by priority.
    func cluster(of app: AppSerial) async throws -> [(device: DeviceID, place: ClusterPlace)]

    /// Returns the request of an id; nil if it was not made, or was removed.
    func serviceRequest(_ id: ServiceRequestID) async throws -> ServiceRequest?
    /// Returns the request of an id if any device made it. Otherwise returns the result of ``serviceProviders(for:_:limit:)`` for
    /// one device of an app. Both are one read. The users in the reach are compared again when the request is made
    /// (``RequestStep/made(_:between:)``): if a user changed in between, the request is refused.
    func requestBeginning(
        _ id: ServiceRequestID, by caller: DeviceSerial, to provider: DeviceID, of app: AppID
    ) async throws -> RequestBeginning
    /// Returns the number of requests of a device that have no result, except requests of a former user. The limit
    /// ``ServiceRequest/mostOfConsumer`` is checked when a request is made, in that transaction.
    func unfinishedRequestCount(of consumer: DeviceSerial) async throws -> Int
    /// Returns up to `limit` requests of a device to another that have no result, except requests of a former user.
    func unfinishedRequests(of consumer: DeviceSerial, to provider: DeviceSerial, limit: Int) async throws
        -> [ServiceRequest]
    /// Finishes a request without a result, in one transaction. The caller must withdraw the request from the inbox of its
    /// provider first.
    ///
    /// The id is kept for at least ``ServiceRequest/undeliveredSeconds``. Beyond ``ServiceRequest/undeliveredOfConsumer`` such
    /// ids of a consumer, the oldest are removed.
    ///
    /// - Returns: False if there is no such request, or it was finished before. Of concurrent results and cancellations, one is
    ///   valid.
    func cancelRequest(_ request: RequestSerial, at now: Timestamp) async throws -> Bool
    /// Returns up to `limit` unfinished requests that the server must end, the longest due first. A request is due if its
    /// deadline is `now` or earlier, or if a change of a user or a deletion has ended it. It stays due until it is finished.
    func dueRequests(in shards: ShardSet, at now: Timestamp, limit: Int) async throws -> [ServiceRequest]
    /// Removes up to `limit` requests whose deadline has passed and whose retention time is over by both clocks, in one
    /// transaction. Returns their number.
    func forgetRequests(in shards: ShardSet, by retention: RetentionTime, limit: Int) async throws -> Int
}
