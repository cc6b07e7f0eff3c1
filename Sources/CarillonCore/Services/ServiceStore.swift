package import CarillonWire

/// What devices offer to each other, and their requests.
///
/// A request changes by ``RequestStep``, in the transaction that appends the envelope of the step (``InboxStore/commit(_:)``). A step
/// that does not fit the state of the request does not count, and its envelope is not appended.
///
/// A change of a device's user and the deletion of a device remove the device's profile and end its requests, in their own
/// transactions:
///
/// | Change | Requests of the device | Requests to the device |
/// |---|---|---|
/// | another user | are due, and abandoned | are due, with ``ErrorCode/userMismatch`` |
/// | deletion; a server is none any more | are removed | are due, with ``ErrorCode/applicationNotFound`` |
///
/// A request belongs to the shard of its provider. Methods with a set of shards return and change nothing of other shards.
///
/// Methods that write are atomic and durable, as ``Store`` describes.
package protocol ServiceStore: Sendable {
    /// Stores what a device offers, and replaces the present profile whole, in one transaction.
    ///
    /// - Returns: Whether others see something else than before; a change of the revision alone is none. Nil if there is no such device.
    func putServiceProfile(_ profile: ServiceProvider.Profile, of device: DeviceSerial) async throws -> Bool?
    /// Removes what a device offers. Returns whether there was something. Requests to the device go on.
    func removeServiceProfile(of device: DeviceSerial) async throws -> Bool
    /// Returns the providers that a device may call and that fit the whole query, up to `limit`, without the device itself, as one read
    /// sees them.
    ///
    /// A user's device finds the servers of its app and of its app's realm (``AppDocument/Kind/realm``), and the providers of its user
    /// there. A server finds the other servers, the devices of the user in the query, and any user's device that the query names.
    ///
    /// - Returns: Nil if the device has no user and is no server, or if it or its app is gone.
    func serviceProviders(for caller: DeviceSerial, _ query: ServiceQuery, limit: Int) async throws -> ServiceReach?
    /// Returns the icon of a provider with its bytes; nil if there is none.
    func serviceIcon(of provider: DeviceSerial) async throws -> ServiceIcon?
    /// Returns up to `limit` other devices of a provider's user, in its app and its app's realm. Empty if the device offers nothing or has
    /// no user.
    func servicePeers(of provider: DeviceSerial, limit: Int) async throws -> [DeviceSerial]

    /// Makes a device of an app a server or gives the server another place; nil makes it a device again, and ends its requests as its
    /// deletion does. One transaction; calls at once do not exceed ``ClusterPlace/mostOfApp``.
    ///
    /// - Returns: False if the app has no such device, or for a nil place no such server; nil if the app has as many servers as it may.
    func setClusterPlace(_ place: ClusterPlace?, of device: DeviceID, app: AppSerial) async throws -> Bool?
    /// Returns the servers of an app, ordered by priority.
    func cluster(of app: AppSerial) async throws -> [(device: DeviceID, place: ClusterPlace)]

    /// Returns the request of an id; nil if it was not made, or is forgotten.
    func serviceRequest(_ id: ServiceRequestID) async throws -> ServiceRequest?
    /// Returns the request of an id if it was made, by whichever device; otherwise what ``serviceProviders(for:_:limit:)`` finds of one
    /// device of an app. Both are one read. The users in the reach are compared again when the request is made
    /// (``RequestStep/made(_:between:)``): a change of a user in between refuses it.
    func asking(
        _ id: ServiceRequestID, by caller: DeviceSerial, to provider: DeviceID, of app: AppID
    ) async throws -> RequestBeginning
    /// Returns the number of requests of a device that have no result, without those that a former user made. The limit
    /// ``ServiceRequest/mostOfConsumer`` is checked when a request is made, in that transaction.
    func unfinishedRequestCount(of consumer: DeviceSerial) async throws -> Int
    /// Returns up to `limit` requests of a device to another that have no result, without those that a former user made.
    func unfinishedRequests(of consumer: DeviceSerial, to provider: DeviceSerial, limit: Int) async throws
        -> [ServiceRequest]
    /// Finishes a request without a result, in one transaction. The caller has taken it out of the inbox of its provider before.
    ///
    /// The id is remembered for ``ServiceRequest/undeliveredSeconds`` at least. Beyond ``ServiceRequest/undeliveredOfConsumer`` such ids
    /// of a consumer the oldest are forgotten.
    ///
    /// - Returns: False if there is no such request, or it was finished before. Of results and cancellations at once, one counts.
    func cancelRequest(_ request: RequestSerial, at now: Timestamp) async throws -> Bool
    /// Returns up to `limit` unfinished requests that the server is to end, those first that have been due the longest: their deadline is
    /// `now` or earlier, or a change of a user or a deletion has ended them. Nothing is changed: each is due until it is finished.
    func dueRequests(in shards: ShardSet, at now: Timestamp, limit: Int) async throws -> [ServiceRequest]
    /// Forgets up to `limit` requests that have been finished for their time by both clocks, and whose deadline has passed, in one
    /// transaction. Returns how many.
    func forgetRequests(in shards: ShardSet, by retention: RetentionTime, limit: Int) async throws -> Int
}
