package import CarillonWire

/// How the inbox of a device comes to one connection: a socket, an event stream or a poll. What differs is how a frame is
/// written.
///
/// The inbox is the buffer; a connection holds only a position, what was given and not answered for, and the knowledge that
/// more is waiting. Two windows bound it: what the device has not answered for, and what the peer has not read. The
/// second is the edge's to measure; while the output is *paused*, nothing is given and nothing is loaded, so that what is
/// replaced, cancelled or expires meanwhile never leaves the store.
///
/// - *catching up*: the connection began, or more was stored than the window could take. Envelopes come from the
///   store in order, as many as the window has room for; what is offered meanwhile will come from the store too.
/// - *live*: everything before the position was given. An offered envelope is given at once, while there is room.
///
/// From *catching up* to *live*: a load came back with less than was asked for, and nothing was offered or stored
/// since it was asked for. From *live* to *catching up*: an offer found no room or the output paused, or something was
/// stored without having been offered here.
///
/// Facts go in, in the past tense; what to do about them comes out, in order.
package struct DeliveryMachine: Sendable {
    package struct Limits: Equatable, Sendable {
        /// The most envelopes that may be given and not answered for.
        package var envelopes: Int
        /// The most bytes of them.
        package var bytes: Int
        /// How many bytes may be on their way to the peer before its output counts as paused; one load asks for no more.
        package var outputBytes: Int
        /// How many envelopes beyond these a load asks for, to know whether more waits.
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
        case give(Envelope)
        /// Read it from the store, and say ``loaded(_:at:)`` or ``loadFailed(_:)``.
        case load(PageRequest)
        /// For the first time since the beginning, nothing more waits.
        case caughtUp
        /// Answer the offer of TTL 0.
        case answerOffer(wasGiven: Bool)
        /// The envelope leaves the inbox, though the device did not say so.
        case settle(MessageID, Outcome)
        case end(End)
    }

    package enum End: Equatable, Sendable {
        case deviceGone
        case failed(StoreFault)
    }

    /// What nobody waits for any more.
    package enum Withdrawal: Hashable, Sendable {
        /// The envelope at a position: it was cancelled or replaced, or expired.
        case envelope(Int64)
        /// The envelopes at many positions.
        case envelopes(Set<Int64>)
        /// What ends with an origin that ended. What tells of the end stays.
        case all(of: OriginKey)
    }

    private let limits: Limits
    private let version: Int
    private let only: Set<EnvelopeKind>?
    private let also: Set<EnvelopeKind>
    /// Everything up to it was looked at.
    package private(set) var position: Int64
    private var given = GivenEnvelopes()
    private var isLoading = false
    /// Whether there may be more in the store than was asked for.
    private var wantsMore = true
    private var notifiedCaughtUp = false
    private var isOutputPaused = false
    /// The number of moves of the device that have begun, and whose end is not known here.
    private var moves: UInt8 = 0
    /// What was withdrawn while a load is under way that may have read it before.
    private var withdrawn: Set<Withdrawal> = []
    /// More was withdrawn than is remembered: what the load brings is read again.
    private var distrustsLoad = false

    private static let rememberedWithdrawals = 256

    /// - Parameter version: The version of Carillon's extension that the peer speaks. The peer is given only kinds that it knows. Any other
    ///   envelope leaves its inbox as unsupported.
    /// - Parameter only: What the peer wants to have; the rest stays where it is. Nil: everything.
    /// - Parameter also: What it knows beside what its version does.
    /// - Parameter position: The place in the inbox behind which it begins.
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

    /// Whether there may be more in the store than was given.
    package var moreWaits: Bool { wantsMore || isLoading }

    package var unacknowledgedCount: Int { given.count }

    /// Before anything else: what is to be loaded first.
    package mutating func began() -> PageRequest { takeLoad() }

    // MARK: What happened to the inbox

    /// An envelope was appended to the inbox, and may be given directly.
    package mutating func offered(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) -> [Action] {
        if wantsMore || !hasRoom(for: envelope) { given.removeExpired(at: now) }
        let isLive = !isLoading && !wantsMore && !isHeld
        guard isLive, hasRoom(for: envelope), isVolatile || envelope.position > position else {
            if isVolatile { return [.answerOffer(wasGiven: false)] }
            wantsMore = true
            return nextLoad()
        }
        let actions = give(envelope, isVolatile: isVolatile, at: now)
        return isVolatile ? actions + [.answerOffer(wasGiven: true)] : actions
    }

    /// Something was queued for the inbox without having been offered.
    package mutating func storedMore(at now: Timestamp) -> [Action] {
        wantsMore = true
        given.removeExpired(at: now)
        return nextLoad()
    }

    /// Nobody waits for an answer to this any more, and it is not given if it was not yet.
    package mutating func withdrew(_ withdrawal: Withdrawal) -> [Action] {
        if case .envelopes = withdrawal {
            distrustsLoad = distrustsLoad || isLoading
        } else if isLoading, !distrustsLoad {
            withdrawn.insert(withdrawal)
            distrustsLoad = withdrawn.count > Self.rememberedWithdrawals
        }
        return given.remove(withdrawal) ? nextLoad() : []
    }

    // MARK: What was loaded

    /// The load that was asked for came back.
    package mutating func loaded(_ read: InboxRead, at now: Timestamp) -> [Action] {
        switch read {
        case .page(let page): loaded(page, at: now)
        // Nobody told this connection when it began too late.
        case .deviceGone: [.end(.deviceGone)]
        }
    }

    private mutating func loaded(_ page: InboxPage, at now: Timestamp) -> [Action] {
        isLoading = false
        defer { withdrawn.removeAll() }
        if isHeld || distrustsLoad {
            distrustsLoad = false
            wantsMore = true
            return nextLoad()
        }
        var actions: [Action] = []
        if !page.isComplete { wantsMore = true }
        for envelope in page.envelopes where envelope.position > position {
            guard given.count < limits.envelopes else {
                wantsMore = true
                break
            }
            if isWithdrawn(envelope) || envelope.isExpired(at: now) {
                position = envelope.position
            } else {
                actions += give(envelope, isVolatile: false, at: now)
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

    // MARK: What the peer did

    /// Whether an envelope that was given is still waited for.
    package func holds(_ id: MessageID) -> Bool { given.holds(id) }

    /// The device answered for an envelope.
    package mutating func settled(_ id: MessageID) -> [Action] { given.remove(id) ? nextLoad() : [] }

    /// The peer does not take what was given: nothing more is given until it does.
    package mutating func outputPaused() { isOutputPaused = true }

    /// The peer took what was given.
    package mutating func outputResumed(at now: Timestamp) -> [Action] {
        isOutputPaused = false
        given.removeExpired(at: now)
        return nextLoad()
    }

    /// The connection ended: what was given of TTL 0 and never answered for is lost.
    package mutating func disconnected() -> [Action] {
        given.takeVolatile().map { .settle($0, .dropped) }
    }

    // MARK: Another home

    /// The device moves to another home: nothing is given or loaded until it has moved, and what is being loaded is not given.
    package mutating func moving() {
        moves += 1
        // It can end after the move, and have what is withdrawn at the new home before this connection is a session there.
        distrustsLoad = distrustsLoad || isLoading
    }

    /// Takes back envelopes that were given and are not written to the peer, because this connection is not informed if they are
    /// withdrawn. They are loaded again. Envelopes of TTL 0 are lost.
    ///
    /// - Parameter written: The position of the last envelope that was written to the peer.
    /// - Returns: The envelopes that were taken back.
    package mutating func takeBack(after written: Int64) -> (envelopes: [MessageID], actions: [Action]) {
        let taken = given.take(after: written)
        if let first = taken.stored.map(\.position).min() { position = min(position, first - 1) }
        return (taken.stored + taken.volatile, taken.volatile.map { .settle($0, .dropped) })
    }

    /// The device stays at its home. What was stored meanwhile is loaded.
    package mutating func moved(at now: Timestamp) -> [Action] {
        if moves > 0 { moves -= 1 }
        return storedMore(at: now)
    }

    /// The connection is the session at the device's new home. What was stored meanwhile is loaded. The device can have answered at
    /// that home for what was given before, and the connection does not learn of these answers. So the window does not wait for them.
    package mutating func arrivedAgain(at now: Timestamp) -> [Action] {
        given.forgetStored()
        return moved(at: now)
    }

    private var isHeld: Bool { isOutputPaused || moves > 0 }

    // MARK: The window

    private func hasRoom(for envelope: Envelope) -> Bool {
        given.count < limits.envelopes && (given.count == 0 || given.bytes + envelope.byteCount <= limits.bytes)
    }

    private mutating func give(_ envelope: Envelope, isVolatile: Bool, at now: Timestamp) -> [Action] {
        position = max(position, envelope.position)
        if let only, !only.contains(envelope.kind.number) { return [] }
        guard version >= envelope.behaviour.knownSince || also.contains(envelope.kind.number) else {
            return envelope.behaviour.isForAnyClient ? [] : [.settle(envelope.id, .unsupported)]
        }
        given.add(envelope, isVolatile: isVolatile, at: now)
        return [.give(envelope)]
    }

    /// Asks for more when more waits, and at least half of the window is free, so that loads are worth their while.
    private mutating func nextLoad() -> [Action] {
        guard wantsMore, !isLoading, !isHeld, given.count <= limits.envelopes / 2, given.bytes <= limits.bytes / 2
        else { return [] }
        return [.load(takeLoad())]
    }

    private mutating func takeLoad() -> PageRequest {
        isLoading = true
        wantsMore = false
        return PageRequest(
            after: position, limit: limits.envelopes - given.count + limits.lookAhead,
            bytes: min(limits.bytes - given.bytes, limits.outputBytes))
    }
}
