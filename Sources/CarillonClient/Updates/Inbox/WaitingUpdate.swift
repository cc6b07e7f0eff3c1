import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An update that waits at the device.
struct WaitingUpdate: Equatable, Sendable {
    enum State: String, Sendable {
        /// To be looked at.
        case new
        /// It waits for something to happen at the device.
        case deferred
        /// It comes again, or it is with the user or the app's own code.
        case away
        /// It failed, and comes again.
        case failed
        /// A later one stands for it: it is done with that, and looked at again when that comes to nothing.
        case absorbed
    }

    var number: Int64
    var key: UpdateKey
    var attempt: Int
    var kind: UpdateKind
    var payload: UpdatePayload
    var publishedAt: Int64
    var orderKey: String?
    var wasNotified: Bool
    /// The starts of the app's code for it that ended with the process.
    var starts = 0

    var update: PushUpdate {
        PushUpdate(
            id: key.update, entry: key.entry, attempt: attempt, kind: .init(payload, kind),
            publishedAt: Date(milliseconds: publishedAt))
    }
}

/// What waits to be said of an update.
struct WaitingResult: Equatable, Sendable {
    var number: Int64
    var json: JSONValue
}
