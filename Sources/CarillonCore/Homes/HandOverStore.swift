/// Keeps hand-overs until they are applied. No method writes one: the changes that cause a hand-over write it in their own transaction.
package protocol HandOverStore: Sendable {
    /// Returns the first hand-overs to shards of a set that are not applied, in the order of their numbers. Nothing is taken: a later call
    /// returns them again until they are applied. A hand-over of a kind that this version does not know is left out, and stays for a newer
    /// version.
    ///
    /// - Parameter number: The number behind which the hand-overs begin; 0 for all.
    /// - Throws: ``StoreFault``.
    func handOvers(in shards: ShardSet, after number: Int64, limit: Int) async throws -> [HandOver]
    /// Counts the hand-overs to shards of a set that are not applied, also those of a kind that this version does not know, and finds the
    /// first of them.
    ///
    /// - Parameter limit: At most so many are counted.
    /// - Throws: ``StoreFault``.
    func waitingHandOvers(in shards: ShardSet, limit: Int) async throws -> WaitingHandOvers
    /// Removes hand-overs, and makes the changes that belong to them, in one transaction. A hand-over that was removed before is left out
    /// with its change, so of calls at once for one hand-over, one changes something.
    ///
    /// - Throws: ``StoreFault``, and nothing is changed.
    func applyHandOvers(_ applied: [AppliedHandOver]) async throws
}
