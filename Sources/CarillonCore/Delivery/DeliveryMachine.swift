package import CarillonWire

/// Delivers the inbox of a device to one connection: a socket, an event stream or a poll. The connection's handler writes the
/// frames, which differ by the kind of connection.
///
/// The inbox is the buffer. A connection keeps only a position, the envelopes that were delivered without an answer, and whether
/// more envelopes are waiting. Two windows limit a connection: the envelopes that the device has not answered, and the bytes that
/// the peer has not read. The handler measures the second one. While the output is *paused*, no envelope is delivered or loaded,
/// so an envelope that is replaced, cancelled or expires meanwhile never leaves the store.
///
/// - *catching up*: the connection began, or more was stored than the window had room for. Envelopes come from the store in
///   order, as many as the window has room for. Envelopes that are offered meanwhile come from the store later, too.
/// - *live*: every envelope before the position was delivered. An offered envelope is delivered at once while the window has
///   room.
///
/// From *catching up* to *live*: a load returned fewer envelopes than it requested, and none was offered or stored since the load
/// began. From *live* to *catching up*: an offer found no room, the output was paused, or an envelope was stored without an offer
/// to this connection.
///
/// The inputs are facts in the past tense. The outputs are actions, in the order in which they must be done.
package struct DeliveryMachine: Sendable {
    package struct Limits: Equatable, Sendable {
        /// The maximum number of envelopes that are delivered without an answer.
        package var envelopes: Int
        /// The maximum number of bytes of these envelopes.
        package var bytes: Int
        /// The number of bytes on their way to the peer at which its output is paused. One load requests at most this many bytes.
        package var outputBytes: Int
        /// The number of envelopes that a load requests beyond the window, to find out whether more are waiting.
        package var lookAhead: Int

        package init(
            envelopes: Int = 64, bytes: Int = 262_144, outputBytes: Int = 65_536, lookAhead: Int = 0
        ) {
            self.envelopes = envelopes
            self.bytes = bytes
            self.outputBytes = outputBytes
            self.lookAhead = lookAhead
        }
    }

    package enum Action: Equatable, Sendable {
        case deliver(Envelope)
        /// Read the page from the store, and call ``loaded(_:at:)`` or ``loadFailed(_:)``.
        case load(PageRequest)
        /// No more envelopes are waiting, for the first time since the connection began.
        case caughtUp
        /// Answer the offer of an envelope of TTL 0.
        case answerOffer(wasAccepted: Bool)
        /// Remove the envelope from the inbox with this outcome, without an answer of the device.
        case finish(MessageID, Outcome)
        case end(End)
    }

    package enum End: Equatable, Sendable {
        case deviceGone
        case failed(StoreFault)
    }

    /// Envelopes that must not be delivered any more.
    package enum Withdrawal: Hashable, Sendable {
        /// The envelope at a position, which was cancelled or replaced, or expired.
        case envelope(Int64)
        /// The envelopes at several positions.
        case envelopes(Set<Int64>)
        /// The envelopes that end with an origin. The envelope that reports the end stays.
        case all(of: OriginKey)
    }

    private let limits: Limits
    private let version: Int
    private let only: Set<EnvelopeKind>?
    private let also: Set<EnvelopeKind>
    /// The position of the last envelope that was considered.
    package private(set) var position: Int64
    private var unanswered = UnansweredEnvelopes()
    private var isLoading = false
    /// Whether the store can have more envelopes than were requested.
    private var wantsMore = true
    private var notifiedCaughtUp = false
    private var isOutputPaused = false
    /// The number of moves of the device that began and whose end was not reported yet.
    private var moves: UInt8 = 0
    /// Withdrawals during a load, which can have read the envelopes before they were withdrawn.
    private var withdrawn: Set<Withdrawal> = []
    /// Whether more was withdrawn than is remembered. The loaded page is read again then.
    private var mustReload = false

    private static let rememberedWithdrawals = 256

    /// - Parameter version: The version of Carillon's extension that the peer speaks. Only kinds of envelopes of this version are
    ///   delivered to the peer. Any other envelope leaves its inbox as unsupported.
    /// - Parameter only: The kinds that the peer requested. Other envelopes stay in the inbox. Nil: all kinds.
    /// - Parameter also: The kinds that the peer supports beside those of its version.
    /// - Parameter position: The position in the inbox after which delivery begins.
    package init(
        limits: Limits, version: Int = 1, only: Set<EnvelopeKind>? = nil, also: Set<EnvelopeKind> = [],
        after position: Int64 = 0
    ) {
        self.limits = limits
        self.position = position
        self.version = version
        self.only = only
        self.also = also
    }

    /// Whether the store can have more envelopes than were delivered.
    package var moreWaits: Bool { wantsMore || isLoading }

    package var unacknowledgedCount: Int { unanswered.count }

    /// Returns the first page to load. This is the first call.
    package mutating func began() -> PageRequest { takeLoad() }

    // MARK: Changes of the inbox

    /// An envelope was appended to the inbox, and may be delivered directly.
    package mutating func offered(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) -> [Action] {
        if wantsMore || !hasRoom(for: envelope) { unanswered.removeExpired(at: now) }
        let isLive = !isLoading && !wantsMore && !isHeld
        guard isLive, hasRoom(for: envelope), isVolatile || envelope.position > position else {
            if isVolatile { return [.answerOffer(wasAccepted: false)] }
            wantsMore = true
            return nextLoad()
        }
        let actions = deliver(envelope, isVolatile: isVolatile, at: now)
        return isVolatile ? actions + [.answerOffer(wasAccepted: true)] : actions
    }

    /// An envelope was queued for the inbox without an offer.
    package mutating func storedMore(at now: Timestamp) -> [Action] {
        wantsMore = true
        unanswered.removeExpired(at: now)
        return nextLoad()
    }

    /// Envelopes were withdrawn. Their answers are not expected any more, and they are not delivered if they were not yet.
    package mutating func withdrew(_ withdrawal: Withdrawal) -> [Action] {
        if case .envelopes = withdrawal {
            mustReload = mustReload || isLoading
        } else if isLoading, !mustReload {
            withdrawn.insert(withdrawal)
            mustReload = withdrawn.count > Self.rememberedWithdrawals
        }
        return unanswered.remove(withdrawal) ? nextLoad() : []
    }

    // MARK: Loads

    /// The requested load returned.
    package mutating func loaded(_ read: InboxRead, at now: Timestamp) -> [Action] {
        switch read {
        case .page(let page): loaded(page, at: now)
        // A connection that began after the deletion of the device was not notified of it.
        case .deviceGone: [.end(.deviceGone)]
        }
    }

    private mutating func loaded(_ page: InboxPage, at now: Timestamp) -> [Action] {
        isLoading = false
        defer { withdrawn.removeAll() }
        if isHeld || mustReload {
            mustReload = false
            wantsMore = true
            return nextLoad()
        }
        var actions: [Action] = []
        if !page.isComplete { wantsMore = true }
        for envelope in page.envelopes where envelope.position > position {
            guard unanswered.count < limits.envelopes else {
                wantsMore = true
                break
            }
            if isWithdrawn(envelope) || envelope.isExpired(at: now) {
                position = envelope.position
            } else {
                actions += deliver(envelope, isVolatile: false, at: now)
            }
        }
        actions += nextLoad()
        if !wantsMore, !isLoading, !notifiedCaughtUp {
            notifiedCaughtUp = true
            actions.append(.caughtUp)
        }
        return actions
    }

    package mutating func loadFailed(_ fault: StoreFault) -> [Action] { [.end(.failed(fault))] }

    private func isWithdrawn(_ envelope: Envelope) -> Bool {
        guard !withdrawn.isEmpty else { return false }
        return withdrawn.contains(.envelope(envelope.position))
            || envelope.behaviour.endsWithOrigin && withdrawn.contains(.all(of: envelope.origin.key))
    }

    // MARK: Events of the peer

    /// Whether an envelope was delivered and is not answered yet.
    package func holds(_ id: MessageID) -> Bool { unanswered.holds(id) }

    /// The device acknowledged or rejected an envelope.
    package mutating func finished(_ id: MessageID) -> [Action] { unanswered.remove(id) ? nextLoad() : [] }

    /// The peer does not read the sent data. Nothing more is delivered until it does.
    package mutating func outputPaused() { isOutputPaused = true }

    /// The peer read the sent data.
    package mutating func outputResumed(at now: Timestamp) -> [Action] {
        isOutputPaused = false
        unanswered.removeExpired(at: now)
        return nextLoad()
    }

    /// The connection ended. Envelopes of TTL 0 that were delivered and not answered are lost.
    package mutating func disconnected() -> [Action] {
        unanswered.takeVolatile().map { .finish($0, .dropped) }
    }

    // MARK: Moves to another home

    /// The device moves to another home. Nothing is delivered or loaded until the end of the move, and a load in progress is
    /// discarded.
    package mutating func moving() {
        moves += 1
        // The load can end after the move, and contain envelopes that were withdrawn at the new home before this connection is a
        // session there.
        mustReload = mustReload || isLoading
    }

    /// Takes back envelopes that were delivered to the connection but not written to the peer, because this connection is not
    /// notified if they are withdrawn. They are loaded again. Envelopes of TTL 0 are lost.
    ///
    /// - Parameter written: The position of the last envelope that was written to the peer.
    /// - Returns: The envelopes that were taken back.
    package mutating func takeBack(after written: Int64) -> (envelopes: [MessageID], actions: [Action]) {
        let taken = unanswered.take(after: written)
        if let first = taken.stored.map(\.position).min() { position = min(position, first - 1) }
        return (taken.stored + taken.volatile, taken.volatile.map { .finish($0, .dropped) })
    }

    /// The device stays at its home. Envelopes that were stored meanwhile are loaded.
    package mutating func moved(at now: Timestamp) -> [Action] {
        if moves > 0 { moves -= 1 }
        return storedMore(at: now)
    }

    /// The connection is the session at the device's new home. Envelopes that were stored meanwhile are loaded. The device can
    /// have answered earlier envelopes at that home, and the connection is not notified of these answers. So the window does not
    /// wait for them.
    package mutating func arrivedAgain(at now: Timestamp) -> [Action] {
        unanswered.forgetStored()
        return moved(at: now)
    }

    private var isHeld: Bool { isOutputPaused || moves > 0 }

    // MARK: The window

    private func hasRoom(for envelope: Envelope) -> Bool {
        unanswered.count < limits.envelopes
            && (unanswered.count == 0 || unanswered.bytes + envelope.byteCount <= limits.bytes)
    }

    private mutating func deliver(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) -> [Action] {
        position = max(position, envelope.position)
        if let only, !only.contains(envelope.kind.number) { return [] }
        guard version >= envelope.behaviour.firstVersion || also.contains(envelope.kind.number) else {
            return envelope.behaviour.isForAnyClient ? [] : [.finish(envelope.id, .unsupported)]
        }
        unanswered.add(envelope, isVolatile: isVolatile, at: now)
        return [.deliver(envelope)]
    }

    /// Requests the next load if more envelopes are waiting and at least half of the window is free, so that loads are not too
    /// small.
    private mutating func nextLoad() -> [Action] {
        guard wantsMore, !isLoading, !isHeld, unanswered.count <= limits.envelopes / 2, unanswered.bytes <= limits.bytes / 2
        else { return [] }
        return [.load(takeLoad())]
    }

    private mutating func takeLoad() -> PageRequest {
        isLoading = true
        wantsMore = false
        return PageRequest(
            after: position, limit: limits.envelopes - unanswered.count + limits.lookAhead,
            bytes: min(limits.bytes - unanswered.bytes, limits.outputBytes))
    }
}
