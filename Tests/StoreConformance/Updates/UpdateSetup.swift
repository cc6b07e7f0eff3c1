package import CarillonCore
import CarillonWire

/// Prepares what no method of ``UpdateStore`` can.
package protocol UpdateSetup: Sendable {
    /// Stops the store, pauses all live updates as a restored backup does, and opens the store again. Nil if the store keeps nothing.
    func reopenWithPausedUpdates(_ store: any Store, at now: Timestamp) async throws -> (any Store)?
    /// Makes ``UpdateStore/unfinishedOfEnded(in:limit:)`` not find the completions of an ended update.
    func hideUnfinished(of update: UpdateSerial, in store: any Store) async throws
}
