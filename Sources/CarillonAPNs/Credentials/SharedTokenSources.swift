/// The token sources of the process, by what must be equal for clients to share one.
///
/// - *in use*: a client or one of its connections has the source. It stays. Left to *unused* when the last of them ends.
/// - *unused*: the source waits for another client. Left to *in use* by a client with the same key, and removed when its token is to
///   be renewed, or when more than ``mostUnused`` others have been unused for a shorter time.
///
/// Each call finds out which sources are unused, so that removals wait for the next call.
struct SharedTokenSources {
    private struct Owner: Hashable {
        var keyID: String
        var teamID: String
        var publicKey: [UInt8]
        /// Tokens of clients with different clocks have nothing to do with each other.
        var clock: ObjectIdentifier
    }

    private struct Entry {
        var source: ProviderTokenSource
        /// The number of the last call that returned the source.
        var returnedAt: UInt64
        /// The number of the first call that found the source unused; nil while it is in use.
        var unusedSince: UInt64?

        mutating func isUnused() -> Bool { isKnownUniquelyReferenced(&source) }
    }

    /// How many sources without a client are kept.
    static let mostUnused = 1000

    private let mostUnused: Int
    private var entries: [Owner: Entry] = [:]
    private var calls: UInt64 = 0

    var count: Int { entries.count }

    init(mostUnused: Int = mostUnused) { self.mostUnused = mostUnused }

    /// Returns the source of all clients with the same key ID, team, key and time source.
    mutating func source(for key: APNsTokenKey, time: APNsTimeSource) -> ProviderTokenSource {
        calls += 1
        let owner = Owner(
            keyID: key.keyID, teamID: key.teamID, publicKey: key.publicKeyBytes, clock: ObjectIdentifier(time.identity))
        findUnused()
        let source = entries[owner]?.source ?? ProviderTokenSource(key: key, time: time)
        entries[owner] = Entry(source: source, returnedAt: calls)
        removeExcess()
        return source
    }

    private mutating func findUnused() {
        for owner in Array(entries.keys) {
            guard entries[owner]?.isUnused() == true else {
                entries[owner]?.unusedSince = nil
                continue
            }
            let since = entries[owner]?.unusedSince ?? calls
            if entries[owner]?.source.hasYoungToken == true {
                entries[owner]?.unusedSince = since
            } else {
                entries[owner] = nil
            }
        }
    }

    private mutating func removeExcess() {
        let unused = entries.filter { $0.value.unusedSince != nil }
        guard unused.count > mostUnused else { return }
        let oldest = unused.sorted { one, other in
            (one.value.unusedSince ?? 0, one.value.returnedAt) < (other.value.unusedSince ?? 0, other.value.returnedAt)
        }
        for (owner, _) in oldest.prefix(unused.count - mostUnused) { entries[owner] = nil }
    }
}
