import CarillonWire

/// The envelopes that were delivered to one connection and that its device has not answered.
struct UnansweredEnvelopes: Sendable {
    private struct Slot {
        var id: MessageID
        /// Nil for an envelope that stays when its origin ends.
        var origin: OriginKey?
        var expiresAt: Timestamp
        var bytes: Int32
        /// TTL 0: the envelope is not in the store.
        var isVolatile: Bool
    }

    private var slots: [Slot] = []
    private(set) var bytes = 0

    var count: Int { slots.count }

    func holds(_ id: MessageID) -> Bool { slots.contains { $0.id == id } }

    mutating func add(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) {
        bytes += envelope.byteCount
        slots.append(
            Slot(
                id: envelope.id, origin: envelope.behaviour.endsWithOrigin ? envelope.origin.key : nil,
                expiresAt: isVolatile ? now.adding(seconds: Envelope.volatileGraceSeconds) : envelope.expiresAt,
                bytes: Int32(clamping: envelope.byteCount), isVolatile: isVolatile))
    }

    /// Returns whether the envelope was present, as do the other methods of this name.
    mutating func remove(_ id: MessageID) -> Bool { remove { $0.id == id } }

    mutating func remove(_ withdrawal: DeliveryMachine.Withdrawal) -> Bool {
        switch withdrawal {
        case .envelope(let position): remove { $0.id.position == position }
        case .envelopes(let positions): remove { positions.contains($0.id.position) }
        case .all(let origin): remove { $0.origin == origin }
        }
    }

    /// Removes envelopes that expired after their delivery. The caller calls this when it needs room.
    mutating func removeExpired(at now: Timestamp) { _ = remove { $0.expiresAt <= now } }

    /// Removes all envelopes, and returns the identifiers of the envelopes of TTL 0.
    mutating func takeVolatile() -> [MessageID] {
        defer { (slots, bytes) = ([], 0) }
        return slots.filter(\.isVolatile).map(\.id)
    }

    /// Removes the envelopes after a position, and returns their identifiers.
    mutating func take(after position: Int64) -> (stored: [MessageID], volatile: [MessageID]) {
        let taken = slots.filter { $0.id.position > position }
        _ = remove { $0.id.position > position }
        return (taken.filter { !$0.isVolatile }.map(\.id), taken.filter(\.isVolatile).map(\.id))
    }

    /// Removes all envelopes except those of TTL 0.
    mutating func forgetStored() { _ = remove { !$0.isVolatile } }

    private mutating func remove(where isOver: (Slot) -> Bool) -> Bool {
        let count = slots.count
        var freed = 0
        slots.removeAll { slot in
            guard isOver(slot) else { return false }
            freed += Int(slot.bytes)
            return true
        }
        bytes -= freed
        if slots.isEmpty, slots.capacity > 8 { slots = [] }
        return slots.count < count
    }
}
