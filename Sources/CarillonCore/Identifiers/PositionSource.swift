import Synchronization

/// Assigns positions to envelopes. The positions of one device increase, also after a move to another home, because each home has
/// an epoch of its own. A position contains its shard.
///
///     0 │ epoch, 24 bits │ sequence, 29 bits │ shard, 10 bits
///
/// Positions from before the introduction of epochs are smaller than those of the first epoch.
package final class PositionSource: Sendable {
    /// The epoch and the sequence of the last position. After the last sequence of an epoch, the next epoch begins.
    private let last: Atomic<Int64>

    private static let sequenceBits: Int64 = 29

    /// - Parameters:
    ///   - epoch: As ``ServerStore/claimEpoch()`` returned it.
    ///   - sequence: The last sequence of the epoch that was used; 0 if none was used.
    package init(epoch: Int64, after sequence: Int64 = 0) { last = Atomic(epoch << Self.sequenceBits + sequence) }

    /// The present epoch. It is later than the epoch of the start after a sequence was used up.
    package var epoch: Int64 { last.load(ordering: .relaxed) >> Self.sequenceBits }

    package func next(for device: DeviceSerial) -> Int64 {
        last.wrappingAdd(1, ordering: .relaxed).newValue << Shard.bits | Int64(Shard(of: device).number)
    }

    /// Continues in an epoch if it is later than the present one.
    package func raise(to epoch: Int64) { _ = last.max(epoch << Self.sequenceBits, ordering: .relaxed) }

    /// Returns the epoch in which a position was assigned.
    package static func epoch(of position: Int64) -> Int64 { position >> (sequenceBits + Shard.bits) }
}
