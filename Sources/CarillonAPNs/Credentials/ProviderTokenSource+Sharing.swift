import Synchronization

extension ProviderTokenSource {
    /// What clients have in common that share a source.
    private struct Owner: Hashable {
        var keyID: String
        var teamID: String
        var publicKey: [UInt8]
        /// Tokens of clients with different clocks have nothing to do with each other.
        var clock: ObjectIdentifier
    }

    private struct Entry {
        weak var source: ProviderTokenSource?
    }

    /// The sources of the process that a client uses.
    private static let sources = Mutex<[Owner: Entry]>([:])

    /// Returns the source of all clients of the process with the same key ID, team, key and time source.
    static func shared(for key: APNsTokenKey, time: APNsTimeSource) -> ProviderTokenSource {
        let owner = Owner(
            keyID: key.keyID, teamID: key.teamID, publicKey: key.publicKeyBytes, clock: ObjectIdentifier(time.identity))
        return sources.withLock { sources -> ProviderTokenSource in
            if let known = sources[owner]?.source { return known }
            let source = ProviderTokenSource(key: key, time: time)
            sources = sources.filter { $0.value.source != nil }
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
