package import CarillonWire

/// Stores the inboxes of devices. Methods that write are atomic and durable, as ``Store`` describes.
package protocol InboxStore: Sendable {
    /// Makes all changes in order, in one transaction, and returns one result for each when they are on disk. Each change sees
    /// the changes before it. Changes of other calls are made before or after all of them.
    ///
    /// A change that cannot be stored returns ``InboxResult/failed(_:)`` and does not affect the others. The limits of the inbox,
    /// collapse keys, idempotency keys and effects are checked in the transaction: concurrent calls do not exceed them.
    ///
    /// Waiting envelopes of one device and collapse key are appended with increasing positions. A `record`, a `replace` and a
    /// message of TTL 0 can arrive after a newer message with their collapse key. They must not replace it.
    ///
    /// - Throws: ``StoreFault``. Then nothing was changed.
    func commit(_ operations: [InboxOperation]) async throws -> [InboxResult]
    /// Returns waiting envelopes of a device after a position, in order of position, except envelopes that expire by `now`. The
    /// page has up to `limit` envelopes and about `bytes` bytes, but at least one envelope if there is one. It contains
    /// everything that was committed before the call.
    ///
    /// - Returns: Nil if there is no such device, or its app was deleted.
    func waiting(device: DeviceSerial, after position: Int64, limit: Int, bytes: Int, at now: Timestamp) async throws
        -> [Envelope]?
    /// Returns a device and the first envelopes of its inbox. The page is read after the device, as
    /// ``waiting(device:after:limit:bytes:at:)`` reads it, and contains everything that was committed before the call. With a
    /// limit of 0 no envelope is read.
    ///
    /// - Returns: Nil if there is no such device, or its app was deleted. The inbox is not read then.
    func arrival(of name: DeviceName, _ load: PageRequest, at now: Timestamp) async throws -> Arrival?
    /// Returns the number of waiting envelopes of a device, except envelopes that expire by `now`; 0 if there is no such device.
    func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int
    /// Returns the number and size of the waiting envelopes of all inboxes together. Expired envelopes count until they are
    /// swept.
    func waitingInAll() async throws -> InboxUsage.Waiting
    /// Returns the record of a message; nil if the message is unknown, or is of a kind without an outcome. A waiting message that
    /// has expired, or whose device was deleted, is returned as ended, before the store ends it.
    func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord?
    /// Ends expired envelopes, and removes outcomes and idempotency keys whose retention time is over, about `limit` in one
    /// transaction.
    ///
    /// - Parameter retention: Nil removes no outcomes and no keys.
    /// - Returns: The envelopes that this call ended, and whether nothing is left to be done.
    func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Swept
}

/// A device that was found, with its waiting envelopes.
package struct Arrival: Equatable, Sendable {
    package var device: Device
    /// Nil if the envelopes cannot be read.
    package var envelopes: [Envelope]?
    /// The revisions of the device's reports that the server has stored, for the answer to the device.
    package var reported: ReportedRevisions

    package init(device: Device, envelopes: [Envelope]?, reported: ReportedRevisions = .none) {
        self.device = device
        self.envelopes = envelopes
        self.reported = reported
    }
}

/// The result of one step of sweeping.
package struct Swept: Equatable, Sendable {
    package struct Expired: Equatable, Sendable {
        package var device: DeviceSerial
        package var position: Int64

        package init(device: DeviceSerial, position: Int64) {
            self.device = device
            self.position = position
        }
    }

    package var expired: [Expired]
    /// Whether nothing is left to do now.
    package var isDone: Bool

    package init(expired: [Expired], isDone: Bool) {
        self.expired = expired
        self.isDone = isDone
    }
}
