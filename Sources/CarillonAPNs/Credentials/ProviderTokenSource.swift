import Synchronization

/// The provider token of a key, for all connections of all clients of the process that use the key.
///
/// APNs counts the renewals of a token for each connection and for each team, so clients must share a token.
final class ProviderTokenSource: Sendable {
    private struct State {
        var machine = ProviderTokenMachine()
        var token: ProviderToken?
    }

    private let key: APNsTokenKey
    private let time: APNsTimeSource
    private let state = Mutex(State())

    init(key: APNsTokenKey, time: APNsTimeSource) {
        self.key = key
        self.time = time
    }

    /// - Returns: The token, and whether it was signed by this call.
    func current(_ now: Moment) throws(APNsError) -> (token: ProviderToken, isNew: Bool) {
        try state.withLock { state throws(APNsError) -> (token: ProviderToken, isNew: Bool) in
            let wall = time.wallSeconds()
            var isForFreshConnections = false
            switch (state.machine.wanted(now, wall: wall), state.token) {
            case (.keep, let token?): return (token, false)
            case (.keep, nil): break
            case (.sign(_, let isForFresh), _): isForFreshConnections = isForFresh
            }
            do {
                let token = ProviderToken(
                    bearer: "bearer " + (try key.sign(issuedAt: wall)), generation: state.machine.generation + 1,
                    isForFreshConnections: isForFreshConnections)
                state.machine.signed(now, wall: wall)
                state.token = token
                return (token, true)
            } catch {
                throw APNsError(.credentialsInvalid, "The provider token cannot be signed.", cause: error)
            }
        }
    }

    /// APNs refused a token as expired or invalid.
    ///
    /// - Returns: Whether a push that was sent with the token can be sent with a newer one.
    func refused(_ token: ProviderToken, _ now: Moment) -> Bool {
        state.withLock { state in
            // The token was replaced already, or belongs to another key, so its refusal requires nothing.
            guard token === state.token else { return true }
            state.machine.refused(generation: token.generation, now)
            return state.machine.wanted(now, wall: time.wallSeconds()) != .keep
        }
    }

    /// Whether a client that is made later can still use the token, by the clock of the source.
    var hasYoungToken: Bool { state.withLock { $0.machine.isYoung(time.now()) } }

    /// Whether the next push is sent with the same token.
    func isCurrent(_ token: ProviderToken, _ now: Moment) -> Bool {
        state.withLock { state in
            token === state.token && state.machine.wanted(now, wall: time.wallSeconds()) == .keep
        }
    }
}
