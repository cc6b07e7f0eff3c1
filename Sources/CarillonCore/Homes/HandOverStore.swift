/// Keeps hand-overs until they are applied. No method writes a hand-over: the changes that cause it write it in their own
/// transaction.
package protocol HandOverStore: Sendable {
    /// Returns the first hand-overs to shards of a set that are not applied, in the order of their numbers. A later call returns
    /// the same hand-overs again until they are applied. A hand-over of a kind that this version does not support is left out,
    /// and stays for a newer version.
    ///
    /// - Parameter number: The number after which the hand-overs begin; 0 for all.
    /// - Throws: ``StoreFault``.
    func handOvers(in shards: ShardSet, after number: Int64, limit: Int) async throws -> [HandOver]
    /// Counts the hand-overs to shards of a set that are not applied, and finds the first of them. Hand-overs of a kind that this
    /// version does not support are counted too.
    ///
    /// - Parameter limit: The largest number that is counted.
    /// - Throws: ``StoreFault``.
    func waitingHandOvers(in shards: ShardSet, limit: Int) async throws -> WaitingHandOvers
    /// Removes hand-overs and makes the changes that belong to them, in one transaction. A hand-over that was removed before is
    /// ignored together with its change. Of concurrent calls for one hand-over, one changes something.
    ///
    /// - Throws: ``StoreFault``. Then nothing is changed.
    func applyHandOvers(_ applied: [AppliedHandOver]) async throws
}
