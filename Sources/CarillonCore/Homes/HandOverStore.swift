/// Keeps hand-overs until they are applied. No method writes one: the changes that cause a hand-over write it in their own transaction.
package protocol HandOverStore: Sendable {
    /// Returns the first hand-overs to shards of a set that are not applied, in the order of their numbers. Nothing is taken: a later call
    /// returns them again until they are applied.
    ///
    /// - Throws: ``StoreFault``.
    func handOvers(in shards: ShardSet, limit: Int) async throws -> [HandOver]
    /// Removes hand-overs, and makes the changes that belong to them, in one transaction. A hand-over that was removed before is left out
    /// with its change, so of calls at once for one hand-over, one changes something.
    ///
    /// - Throws: ``StoreFault``, and nothing is changed.
    func applyHandOvers(_ applied: [AppliedHandOver]) async throws
}
