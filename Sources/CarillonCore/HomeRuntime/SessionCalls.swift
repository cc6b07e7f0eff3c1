/// The order of calls to the sessions of one device. The owner protects this value by a lock, and makes the calls without that
/// lock.
///
/// - *idle*: no call is being made. The thread that adds a call makes it, and then the calls that were added meanwhile
///   (``next()``).
/// - *busy*: a thread makes calls. Added calls wait for it. The state becomes idle when that thread finds no further call.
///
/// If ``mostOffers`` or more calls wait, an added offer becomes ``LiveSession/storedMore()``, and an offer of TTL 0 is refused.
struct SessionCalls: Sendable {
    struct Waiting: Sendable {
        var session: any LiveSession
        var call: SessionCall
    }

    /// The thread that makes an added call.
    enum Added: Sendable {
        /// The caller makes the call, and the calls of ``next()`` after it.
        case begins
        /// The thread that is making calls makes the call.
        case waits
        /// Too many calls wait. The caller must answer the offer of TTL 0.
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

    /// Returns the next calls. Call this method after all earlier calls are made. Returns nil if no call waits; the state is idle
    /// then.
    mutating func next() -> [Waiting]? {
        guard let calls = waiting, !calls.isEmpty else {
            waiting = nil
            return nil
        }
        waiting = []
        return calls
    }
}
