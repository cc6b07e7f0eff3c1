package import CarillonWire

/// The inboxes of devices. Methods that write are atomic and durable, as ``Store`` describes.
package protocol InboxStore: Sendable {
    /// Makes all changes in order, in one transaction, and returns one result for each when they are on disk. Each change sees those before
    /// it, and changes of other calls are before all of them or after all of them.
    ///
    /// A change that cannot be stored returns ``InboxResult/failed(_:)`` and does not affect the others. The limits of the inbox, topics,
    /// idempotency keys and effects are checked in the transaction: calls at once do not exceed them.
    ///
    /// Appended envelopes of one device and topic that wait have rising positions. A `record`, a `replace` and a message of TTL 0 can come
    /// after a newer message of their topic; they must not replace it.
    ///
    /// - Throws: ``StoreFault``. Nothing was changed.
    func commit(_ operations: [InboxOperation]) async throws -> [InboxResult]
    /// Returns waiting envelopes of a device after a position, in order of position, without those that expire by `now`. The page has up to
    /// `limit` envelopes and about `bytes` bytes, but at least one envelope if there is one. It has all that was committed before the call.
    ///
    /// - Returns: Nil if there is no such device, or its app was deleted.
    func waiting(device: DeviceSerial, after position: Int64, limit: Int, bytes: Int, at now: Timestamp) async throws
        -> [Envelope]?
    /// Returns a device and the first envelopes of its inbox. The page is read after the device, as
    /// ``waiting(device:after:limit:bytes:at:)`` reads it, and has everything that was committed before the call. With a
    /// limit of 0 no envelope is read.
    ///
    /// - Returns: Nil if there is no such device, or its app was deleted. The inbox is not read then.
    func arrival(of name: DeviceName, _ load: PageRequest, at now: Timestamp) async throws -> Arrival?
    /// Returns the number of waiting envelopes of a device, without those that expire by `now`; 0 if there is no such device.
    func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int
    /// Returns how much waits in all inboxes together, with what has expired and is not yet swept.
    func waitingInAll() async throws -> InboxUsage.Waiting
    /// Returns what became of a message, or that it waits; nil if it is not known, or is of a kind without an outcome. A message that waits
    /// beyond its time, or for a deleted device, is returned as ended, before the store ends it.
    func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord?
    /// Ends expired envelopes, and forgets outcomes and idempotency keys that were kept for their time, about `limit` in one transaction.
    ///
    /// - Parameter retention: Nil forgets nothing.
    /// - Returns: The envelopes that this call ended, and whether nothing is left to be done.
    func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Swept
}

/// A device that was found, and what waits for it.
package struct Arrival: Equatable, Sendable {
    package var device: Device
    /// Nil if the envelopes cannot be read.
    package var envelopes: [Envelope]?
    /// What it is told that the server has of it.
    package var said: SaidRevisions

    package init(device: Device, envelopes: [Envelope]?, said: SaidRevisions = .none) {
        self.device = device
        self.envelopes = envelopes
        self.said = said
    }
}

/// What one step of sweeping did.
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
