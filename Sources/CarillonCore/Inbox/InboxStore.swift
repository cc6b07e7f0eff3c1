package import CarillonWire

package protocol InboxStore: Sendable {
    /// Makes all the changes in one transaction, and answers when they are on disk, one result for each. One that cannot
    /// be stored answers ``InboxResult/failed(_:)``, and takes none of the others with it. When it throws, nothing was
    /// changed.
    func commit(_ operations: [InboxOperation]) async throws -> [InboxResult]
    /// Waiting envelopes of a device in order of position, those that expire by `now` left out. At least one is
    /// given, when there is one, however large. Nil when there is no such device.
    func waiting(device: DeviceSerial, after position: Int64, limit: Int, bytes: Int, at now: Timestamp) async throws
        -> [Envelope]?
    /// Finds a device and what waits for it, in one visit. `decide` is called with the device that was found, and what was
    /// committed before it answers is in what is read then. Nil when there is none, or it was refused.
    func arrival(
        of name: DeviceName, _ load: DeliveryMachine.Load, at now: Timestamp,
        decide: @escaping @Sendable (Device) -> Arrival.Decision
    ) async throws -> Arrival?
    func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int
    /// How much waits in all inboxes together.
    func waitingInAll() async throws -> InboxUsage.Waiting
    func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord?
    /// Ends expired envelopes, and forgets outcomes and idempotency keys that are past keeping, about so many in one
    /// transaction.
    ///
    /// - Parameter retention: Nil forgets nothing.
    func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Swept
}

/// A device that was found, and what waits for it.
package struct Arrival: Equatable, Sendable {
    package enum Decision: Sendable {
        case refuse
        case accept
        /// Its inbox is not to be read.
        case acceptUnread
    }

    package enum Inbox: Equatable, Sendable {
        case read([Envelope])
        /// It was not to be read, or could not be.
        case unread
        /// The device was deleted meanwhile.
        case gone
    }

    package var device: Device
    package var inbox: Inbox
    /// What it is told that the server has of it.
    package var said: SaidRevisions

    package init(device: Device, inbox: Inbox, said: SaidRevisions = .none) {
        self.device = device
        self.inbox = inbox
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

/// Why a store could not do its work. Nothing was changed.
package struct StoreFault: Error, Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        /// The disk, or the space allotted, is full.
        case full
        /// What was kept cannot be read; another try will not help.
        case damaged
        /// Anything else.
        case unavailable
    }

    package var kind: Kind
    /// For the operator's log.
    package var message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
