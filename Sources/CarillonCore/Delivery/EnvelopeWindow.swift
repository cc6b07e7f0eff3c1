package import CarillonWire

/// What one connection has been given and not answered for, and what it may be given next.
///
/// The inbox is the buffer; a connection holds only a position, a window of unacknowledged envelopes, and the
/// knowledge that more is waiting. Two windows bound it: what the device has not answered for, and what the peer has
/// not read. The second is the edge's to measure; while the output is *paused*, nothing is given and nothing is loaded,
/// so that what is replaced, cancelled or expires meanwhile never leaves the store.
///
/// - *catching up*: the connection began, or more was stored than the window could take. Envelopes come from the
///   store in order, as many as the window has room for; what is offered meanwhile will come from the store too.
/// - *live*: everything before the position was given. An offered envelope is given at once, while there is room.
///
/// From *catching up* to *live*: a load came back with less than was asked for, and nothing was offered or stored
/// since it was asked for. From *live* to *catching up*: an offer found no room or the output paused, or something was
/// stored without having been offered here.
package struct EnvelopeWindow: Sendable {
    package struct Limits: Equatable, Sendable {
        /// The most envelopes that may be given and not answered for.
        package var envelopes: Int
        /// The most bytes of them.
        package var bytes: Int
        /// How many bytes may be on their way to the peer before its output counts as paused; one load asks for no more.
        package var outputBytes: Int

        package init(envelopes: Int = 64, bytes: Int = 262_144, outputBytes: Int = 65_536) {
            self.envelopes = envelopes
            self.bytes = bytes
            self.outputBytes = outputBytes
        }
    }

    /// Ask the store for what follows a position.
    package struct Load: Equatable, Sendable {
        package var after: Int64
        package var limit: Int
        package var bytes: Int

        package init(after: Int64, limit: Int, bytes: Int) {
            self.after = after
            self.limit = limit
            self.bytes = bytes
        }
    }

    package enum Offer: Equatable, Sendable {
        /// Give it to the device now.
        case give
        /// It will come from the store.
        case later(Load?)
    }

    package struct Loaded: Equatable, Sendable {
        package var give: [Envelope] = []
        package var load: Load?
        /// For the first time since the beginning, nothing more waits.
        package var isCaughtUp = false
    }

    /// What nobody waits for any more.
    package enum Withdrawal: Hashable, Sendable {
        /// The envelope at a position: it was cancelled or replaced, or expired.
        case envelope(Int64)
        /// What ends with an origin that ended. What tells of the end stays.
        case all(of: OriginKey)
    }

    private struct Slot {
        var id: MessageID
        /// Nil for what stays when its origin ends.
        var origin: OriginKey?
        var expiresAt: Timestamp
        var bytes: Int32
        /// TTL 0: the store does not know it.
        var isVolatile: Bool
    }

    private let limits: Limits
    private var position: Int64 = 0
    private var slots: [Slot] = []
    private var bytes = 0
    private var isLoading = false
    private var moreWaits = true
    private var toldCaughtUp = false
    private var isOutputPaused = false
    /// What was withdrawn while a load is under way that may have read it before.
    private var withdrawn: Set<Withdrawal> = []
    /// More was withdrawn than is remembered: what the load brings is read again.
    private var distrustsLoad = false

    private static let rememberedWithdrawals = 256

    package init(limits: Limits) { self.limits = limits }

    package var unacknowledgedCount: Int { slots.count }

    package mutating func began() -> Load? { nextLoad() }

    /// An envelope was appended to the inbox, and may be given directly.
    package mutating func offered(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) -> Offer {
        freeExpired(at: now, toFit: moreWaits ? nil : envelope)
        let isLive = !isLoading && !moreWaits && !isOutputPaused
        guard isLive, hasRoom(for: envelope), isVolatile || envelope.position > position else {
            if isVolatile { return .later(nil) }
            moreWaits = true
            return .later(nextLoad())
        }
        give(envelope, isVolatile: isVolatile, at: now)
        return .give
    }

    /// Something was queued for the inbox without having been offered.
    package mutating func storedMore(at now: Timestamp) -> Load? {
        moreWaits = true
        freeExpired(at: now, toFit: nil)
        return nextLoad()
    }

    /// The load that was asked for came back.
    package mutating func loaded(_ envelopes: [Envelope], isComplete: Bool, at now: Timestamp) -> Loaded {
        isLoading = false
        defer { withdrawn.removeAll() }
        var loaded = Loaded()
        if isOutputPaused || distrustsLoad {
            distrustsLoad = false
            moreWaits = true
            loaded.load = nextLoad()
            return loaded
        }
        for envelope in envelopes where envelope.position > position {
            if isWithdrawn(envelope) || envelope.isExpired(at: now) {
                position = envelope.position
                continue
            }
            give(envelope, isVolatile: false, at: now)
            loaded.give.append(envelope)
        }
        if !isComplete { moreWaits = true }
        loaded.load = nextLoad()
        if !moreWaits, !isLoading, !toldCaughtUp {
            toldCaughtUp = true
            loaded.isCaughtUp = true
        }
        return loaded
    }

    /// The load that was asked for failed; it is tried again when something happens.
    package mutating func loadFailed() {
        isLoading = false
        moreWaits = true
    }

    /// The peer does not take what was given: nothing more is given until it does.
    package mutating func outputPaused() { isOutputPaused = true }

    /// The peer took what was given.
    package mutating func outputResumed(at now: Timestamp) -> Load? {
        isOutputPaused = false
        freeExpired(at: now, toFit: nil)
        return nextLoad()
    }

    /// Nobody waits for an answer to this any more, and it is not given if it was not yet.
    package mutating func withdrew(_ withdrawal: Withdrawal) -> Load? {
        if isLoading, !distrustsLoad {
            withdrawn.insert(withdrawal)
            distrustsLoad = withdrawn.count > Self.rememberedWithdrawals
        }
        return free { slot in
            switch withdrawal {
            case .envelope(let position): slot.id.position == position
            case .all(let origin): slot.origin == origin
            }
        }
    }

    private func isWithdrawn(_ envelope: Envelope) -> Bool {
        guard !withdrawn.isEmpty else { return false }
        return withdrawn.contains(.envelope(envelope.position))
            || envelope.behaviour.endsWithOrigin && withdrawn.contains(.all(of: envelope.origin.key))
    }

    /// Whether an envelope that was given is still waited for.
    package func holds(_ id: MessageID) -> Bool { slots.contains { $0.id == id } }

    /// The device answered for an envelope.
    package mutating func settled(_ id: MessageID) -> Load? {
        free { $0.id == id }
    }

    /// The connection ended: these of TTL 0 were given and never answered for.
    package mutating func ended() -> [MessageID] {
        let volatile = slots.filter(\.isVolatile).map(\.id)
        slots = []
        return volatile
    }

    private func hasRoom(for envelope: Envelope) -> Bool {
        slots.count < limits.envelopes && (slots.isEmpty || bytes + envelope.byteCount <= limits.bytes)
    }

    private mutating func give(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) {
        position = max(position, envelope.position)
        bytes += envelope.byteCount
        slots.append(
            Slot(
                id: envelope.id, origin: envelope.behaviour.endsWithOrigin ? envelope.origin.key : nil,
                expiresAt: isVolatile ? now.adding(seconds: Envelope.volatileGraceSeconds) : envelope.expiresAt,
                bytes: Int32(clamping: envelope.byteCount), isVolatile: isVolatile))
    }

    private mutating func free(where isOver: (Slot) -> Bool) -> Load? {
        remove(where: isOver) ? nextLoad() : nil
    }

    /// Answers whether there was anything to remove.
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

    /// An envelope that expired after it was given takes no room any more; looked for when room is needed.
    private mutating func freeExpired(at now: Timestamp, toFit envelope: Envelope?) {
        if let envelope, hasRoom(for: envelope) { return }
        _ = remove { $0.expiresAt <= now }
    }

    /// Asks for more when more waits, and at least half of the window is free, so that loads are worth their while.
    private mutating func nextLoad() -> Load? {
        guard moreWaits, !isLoading, !isOutputPaused, slots.count <= limits.envelopes / 2, bytes <= limits.bytes / 2
        else { return nil }
        isLoading = true
        moreWaits = false
        return Load(
            after: position, limit: limits.envelopes - slots.count, bytes: min(limits.bytes - bytes, limits.outputBytes))
    }
}
