package import CarillonWire

/// The changes of the rows of requests. They are written in the order of the members.
package struct RequestChanges: Equatable, Sendable {
    /// The row of a request after a batch.
    package struct Change: Equatable, Sendable {
        package var state: ServiceRequest.State
        package var isUnwanted: Bool
        /// Nil while the request is unfinished.
        package var finish: Finish?

        package init(state: ServiceRequest.State, isUnwanted: Bool, finish: Finish? = nil) {
            self.state = state
            self.isUnwanted = isUnwanted
            self.finish = finish
        }
    }

    /// The end of a request, and the time at which its row is removed.
    package struct Finish: Equatable, Sendable {
        package var replyHash: [UInt8]?
        /// Whether the request was cancelled before its delivery.
        package var isUndelivered: Bool
        package var forgottenAt: Timestamp
        /// Whether the row also gets the present value of the counter of served seconds. The counter must pass a limit of its own
        /// too.
        package var notesServedTime: Bool

        package init(replyHash: [UInt8]?, isUndelivered: Bool, forgottenAt: Timestamp, notesServedTime: Bool) {
            self.replyHash = replyHash
            self.isUndelivered = isUndelivered
            self.forgottenAt = forgottenAt
            self.notesServedTime = notesServedTime
        }
    }

    /// The change of all unfinished requests that one device sent or received.
    package enum Ending: Equatable, Sendable {
        /// The requests of a consumer are removed.
        case remove(of: DeviceSerial)
        /// The requests of a consumer are abandoned, and are due at a time.
        case abandon(of: DeviceSerial, dueAt: Timestamp)
        /// The requests to a provider get a fault, and are due at a time.
        case fail(to: DeviceSerial, ErrorCode, dueAt: Timestamp)
    }

    /// Requests that are inserted, waiting. Each is due at its deadline.
    package var made: [ServiceRequest] = []
    package var changed: [RequestSerial: Change] = [:]
    package var endings: [Ending] = []
    /// The number of ids of a consumer that are removed, the oldest first. They belong to requests that were cancelled before
    /// delivery.
    package var forgotten: [DeviceSerial: Int] = [:]

    package init() {}
}
