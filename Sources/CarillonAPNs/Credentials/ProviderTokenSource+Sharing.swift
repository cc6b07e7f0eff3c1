import Synchronization

extension ProviderTokenSource {
    /// The sources of the process that a client uses or that have a young token.
    private static let sources = Mutex(SharedTokenSources())

    /// Returns the source of all clients of the process with the same key ID, team, key and time source.
    ///
    /// The process keeps a source without a client until its token is to be renewed, so that a program that makes a client for
    /// each job does not sign a token for each job. It keeps ``SharedTokenSources/mostUnused`` of them; beyond that the next call
    /// removes the source that has been unused for the longest time.
    static func shared(for key: APNsTokenKey, time: APNsTimeSource) -> ProviderTokenSource {
        sources.withLock { $0.source(for: key, time: time) }
    }
}

/// How the connections of one client come to the token of its key.
struct ProviderTokens: Sendable {
    let source: ProviderTokenSource
    /// Called when a push of the client was what a token was signed for.
    let renewed: @Sendable () -> Void

    func current(_ now: Moment) throws(APNsError) -> ProviderToken {
        let (token, isNew) = try source.current(now)
        if isNew { renewed() }
        return token
    }
}
