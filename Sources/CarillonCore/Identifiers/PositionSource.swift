import Synchronization

/// Gives envelopes their places. Those of one device ascend, also from one home to the next, as each home has an epoch of its
/// own; and a place says in which shard it is.
///
///     0 │ epoch, 24 bits │ sequence, 29 bits │ shard, 10 bits
///
/// What was stored before there were epochs lies below the first of them.
package final class PositionSource: Sendable {
    /// Epoch and sequence of the last. A sequence that is used up goes on in the next epoch.
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

    /// The epoch in which a place was given.
    package static func epoch(of position: Int64) -> Int64 { position >> (sequenceBits + Shard.bits) }
}
