import Synchronization

extension ProviderTokenSource {
    /// The values that must be equal for clients to share a source.
    private struct Owner: Hashable {
        var keyID: String
        var teamID: String
        var publicKey: [UInt8]
        /// Tokens of clients with different clocks have nothing to do with each other.
        var clock: ObjectIdentifier
    }

    private struct Entry {
        var source: ProviderTokenSource

        /// Whether no client uses the source, and its token is too old for another one.
        mutating func isOver() -> Bool { isKnownUniquelyReferenced(&source) && !source.hasYoungToken }
    }

    /// The sources of the process that a client uses or that have a young token.
    private static let sources = Mutex<[Owner: Entry]>([:])

    /// Returns the source of all clients of the process with the same key ID, team, key and time source.
    ///
    /// The process keeps a source without a client until its token is to be renewed, so that a program that makes a client for
    /// each job does not sign a token for each job. The next call after that removes the source.
    static func shared(for key: APNsTokenKey, time: APNsTimeSource) -> ProviderTokenSource {
        let owner = Owner(
            keyID: key.keyID, teamID: key.teamID, publicKey: key.publicKeyBytes, clock: ObjectIdentifier(time.identity))
        return sources.withLock { sources -> ProviderTokenSource in
            for owner in Array(sources.keys) where sources[owner]?.isOver() == true { sources[owner] = nil }
            if let known = sources[owner]?.source { return known }
            let source = ProviderTokenSource(key: key, time: time)
            sources[owner] = Entry(source: source)
            return source
        }
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
