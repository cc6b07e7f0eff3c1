package import CarillonCore

/// Rows of inboxes and service requests.
package protocol InboxRows: Sendable {
    func addEnvelope(_ envelope: EnvelopeRow, in store: any Store) async throws
    /// Returns the positions of all envelopes.
    func positions(in store: any Store) async throws -> [Int64]
    /// Returns how many outcomes have this name.
    func countOutcomes(_ name: String, in store: any Store) async throws -> Int
    /// Adds a service request of a device to itself that ended in 1970.
    func addEndedRequest(of device: DeviceSerial, _ app: AppSerial, in store: any Store) async throws
}

/// An envelope with a body of one byte that expires after 10 minutes.
package struct EnvelopeRow: Sendable {
    package var position: Int64
    package var device: DeviceSerial
    package var app: AppSerial
    package var kind: EnvelopeKind
    package var originKind: Origin.Kind
    package var origin: Int64
    package var acceptedAt: Timestamp

    package init(
        position: Int64, device: DeviceSerial, app: AppSerial, kind: EnvelopeKind, originKind: Origin.Kind, origin: Int64,
        acceptedAt: Timestamp
    ) {
        (self.position, self.device, self.app, self.kind) = (position, device, app, kind)
        (self.originKind, self.origin, self.acceptedAt) = (originKind, origin, acceptedAt)
    }
}
