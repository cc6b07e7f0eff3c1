/// The order of calls to the sessions of one device. The owner has a lock for this value, and makes the calls without that lock.
///
/// - *idle*: no call is being made. The thread that adds a call makes it, and then takes what was added meanwhile (``next()``).
/// - *busy*: a thread makes calls. Calls that are added wait for it. Idle again when that thread finds no further call.
///
/// While the state is busy, up to ``mostOffers`` calls wait together with further offers. Beyond that, an offer becomes
/// ``LiveSession/storedMore()``, and an offer of TTL 0 is refused.
struct SessionCalls: Sendable {
    struct Waiting: Sendable {
        var session: any LiveSession
        var call: SessionCall
    }

    /// Who makes a call that was added.
    enum Added: Sendable {
        /// The caller makes the call, and the calls of ``next()`` after it.
        case begins
        /// The thread that makes calls makes it.
        case waits
        /// Too many calls wait. The caller answers the offer of TTL 0.
        case refused
    }

    static let mostOffers = 1000

    /// Nil if idle. An empty array needs no memory of its own.
    private var waiting: [Waiting]?

    var isIdle: Bool { waiting == nil }

    mutating func add(_ call: SessionCall, to session: any LiveSession) -> Added {
        guard let count = waiting?.count else {
            waiting = []
            return .begins
        }
        var call = call
        switch call {
        case .offer where count >= Self.mostOffers: call = .storedMore
        case .offerVolatile where count >= Self.mostOffers: return .refused
        default: break
        }
        if case .storedMore = call, let last = waiting?.last, last.session === session, case .storedMore = last.call {
            return .waits
        }
        waiting?.append(Waiting(session: session, call: call))
        return .waits
    }

    /// Call this when all calls before are made. Returns the next calls. Nil: no call waits, and the state is idle.
    mutating func next() -> [Waiting]? {
        guard let calls = waiting, !calls.isEmpty else {
            waiting = nil
            return nil
        }
        waiting = []
        return calls
    }
}
