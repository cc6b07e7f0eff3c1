package import CarillonWire

/// Stores the identity, the history and the clock of the server, and checks the store. Methods that write are atomic and
/// durable, as ``Store`` describes.
package protocol ServerStore: Sendable {
    /// Returns the id of this server. The first call stores the id that it proposes. The id stays the same for the lifetime of
    /// the store, also after a restoration. Concurrent first calls return the same id, which one of them proposed.
    func serverID(proposing proposed: ServerID) async throws -> ServerID
    /// Returns a number that identifies the history of the store. The first call stores the number that it proposes, and so
    /// does the first call after a restoration from a backup. Concurrent first calls return the same number, which one of
    /// them proposed.
    func history(proposing proposed: Int64) async throws -> Int64
    /// Returns an epoch that no call returned before, and that is later than every stored position (``PositionSource``). The
    /// epoch is on disk when it is returned. Concurrent calls return different epochs.
    func claimEpoch() async throws -> Int64
    /// Returns the counter of seconds for which the server was in service, as it was written last; 0 at first. The store writes
    /// its value into each row that is removed permanently after a time (``RetentionCutoff``).
    func servedSeconds() async throws -> Int64
    /// Writes the counter, unless it is greater already.
    func noteServed(_ seconds: Int64) async throws
    /// Returns normally if the store can be read and is not damaged. Damage that a call found is remembered until the store is
    /// opened again.
    ///
    /// - Throws: ``StoreFault``.
    func checkHealth() async throws
    /// Returns normally if changes can be written: no change failed since the last successful check, or a test write succeeds
    /// now.
    ///
    /// - Throws: ``StoreFault``.
    func checkWrites() async throws
    /// How long the oldest change that is not on disk has waited; zero if all changes are on disk.
    var oldestChangeWait: Duration { get }
    /// How long the present commit has taken. Without a commit, how long the oldest change has waited for one; zero without a
    /// change.
    var commitTime: Duration { get }
}
