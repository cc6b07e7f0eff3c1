import Synchronization

/// The one provider token of a client, for all of its connections.
final class ProviderTokenSource: Sendable {
    private struct State {
        var machine = ProviderTokenMachine()
        var token: ProviderToken?
    }

    private let key: APNsTokenKey
    private let time: APNsTimeSource
    private let renewals: @Sendable () -> Void
    private let state = Mutex(State())

    init(key: APNsTokenKey, time: APNsTimeSource, renewals: @escaping @Sendable () -> Void) {
        self.key = key
        self.time = time
        self.renewals = renewals
    }

    func hasSameKey(as other: ProviderTokenSource) -> Bool { key.isSame(as: other.key) }

    func current(_ now: Moment) throws(APNsError) -> ProviderToken {
        let (token, isNew) = try state.withLock { state throws(APNsError) -> (ProviderToken, Bool) in
            let wall = time.wallSeconds()
            switch (state.machine.wanted(now, wall: wall), state.token) {
            case (.keep, let token?): return (token, false)
            default:
                do {
                    let token = ProviderToken(
                        bearer: "bearer " + (try key.sign(issuedAt: wall)), generation: state.machine.generation + 1)
                    state.machine.signed(now, wall: wall)
                    state.token = token
                    return (token, true)
                } catch {
                    throw APNsError(.credentialsInvalid, "The provider token cannot be signed.", cause: error)
                }
            }
        }
        if isNew { renewals() }
        return token
    }

    /// - Returns: whether a push that was sent with the given token can be sent with a newer one.
    func reportedExpired(_ token: ProviderToken, _ now: Moment) -> Bool {
        state.withLock { state in
            // One that was replaced, or that another key signed, is old news.
            guard token === state.token else { return true }
            state.machine.reportedExpired(generation: token.generation)
            return state.machine.wanted(now, wall: time.wallSeconds()) != .keep
        }
    }
}
