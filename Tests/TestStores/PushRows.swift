package import CarillonCore

/// Rows of pushes.
package protocol PushRows: Sendable {
    func addPush(_ push: PushRow, in store: any Store) async throws
    /// Adds the notification that a push of a subscription shows after its envelope has left.
    func keepPush(_ push: Int64, of subscription: SubscriptionSerial, at now: Timestamp, in store: any Store) async throws
    /// Returns the states of all pushes in the order of their serial numbers; nil for a number that no state has.
    func pushStates(in store: any Store) async throws -> [PushState?]
    /// Returns the serial numbers of the pushes whose notification is stored.
    func keptPushes(in store: any Store) async throws -> [Int64]
    /// Returns the number of pushes with the text of a firing.
    func countFiredPushes(in store: any Store) async throws -> Int
    /// Returns for each push whether its text was shortened.
    func shortenedPushes(in store: any Store) async throws -> [Bool]
}

/// A push for one envelope.
package struct PushRow: Sendable {
    package var serial: Int64
    package var device: DeviceSerial
    package var queue: Int64
    package var kind: PushKind
    package var position: Int64
    package var state: PushState
    package var dueAt: Timestamp?
    package var setAt: Timestamp
    package var endsAt: Timestamp

    package init(
        serial: Int64, device: DeviceSerial, queue: Int64, kind: PushKind, position: Int64, state: PushState,
        dueAt: Timestamp?, setAt: Timestamp, endsAt: Timestamp
    ) {
        (self.serial, self.device, self.queue, self.kind) = (serial, device, queue, kind)
        (self.position, self.state, self.dueAt) = (position, state, dueAt)
        (self.setAt, self.endsAt) = (setAt, endsAt)
    }
}
