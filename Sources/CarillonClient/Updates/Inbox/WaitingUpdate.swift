import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An unfinished update in the inbox.
struct WaitingUpdate: Equatable, Sendable {
    enum State: String, Sendable {
        /// Ready for processing.
        case new
        /// Waits for a condition at the device.
        case deferred
        /// Waits for the user or the app's own code, or for another delivery.
        case away
        /// Failed; the server sends it again.
        case failed
        /// Replaced by a later update. It finishes with the later update, and is processed again if that one is withdrawn.
        case coalesced = "absorbed"
    }

    var number: Int64
    var key: UpdateKey
    var attempt: Int
    var kind: UpdateKind
    var payload: UpdatePayload
    var publishedAt: Int64
    var orderKey: String?
    var wasNotified: Bool
    /// The starts of the app's code for the update that ended with the process.
    var starts = 0

    var update: PushUpdate {
        PushUpdate(
            id: key.update, entry: key.entry, attempt: attempt, kind: .init(payload, kind),
            publishedAt: Date(milliseconds: publishedAt))
    }
}

/// A result that must be reported to the server.
struct WaitingResult: Equatable, Sendable {
    var number: Int64
    var json: JSONValue
}
