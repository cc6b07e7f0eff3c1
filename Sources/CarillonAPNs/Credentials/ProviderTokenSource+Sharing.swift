import Synchronization

extension ProviderTokenSource {
    /// The sources of the process that a client uses or that have a recent token.
    private static let sources = Mutex(SharedTokenSources())

    /// Returns the source of all clients of the process with the same key ID, team, key and time source.
    ///
    /// The process keeps a source without a client until its token must be renewed, so that a program that makes a client for
    /// each job does not sign a token for each job. It keeps up to ``SharedTokenSources/mostUnused`` of them. Beyond this
    /// limit, the next call removes the source that has been unused for the longest time.
    static func shared(for key: APNsTokenKey, time: APNsTimeSource) -> ProviderTokenSource {
        sources.withLock { $0.source(for: key, time: time) }
    }
}

/// The access of one client's connections to the token of its key.
struct ProviderTokens: Sendable {
    let source: ProviderTokenSource
    /// Called when a token was signed for a push of this client.
    let renewed: @Sendable () -> Void

    func current(_ now: Moment) throws(APNsError) -> ProviderToken {
        let (token, isNew) = try source.current(now)
        if isNew { renewed() }
        return token
    }
}
