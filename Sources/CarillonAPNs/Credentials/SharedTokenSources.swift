/// The token sources of the process, by the properties that must be equal for clients to share a source.
///
/// - *in use*: a client or one of its connections refers to the source, so it is kept. The state becomes *unused* when the
///   last of them ends.
/// - *unused*: the source is kept for another client. The state becomes *in use* for a client with the same key. The source
///   is removed when its token must be renewed, or when more than ``mostUnused`` other sources have been unused for a shorter
///   time.
///
/// Each call detects the unused sources, so sources are removed only by the next call.
struct SharedTokenSources {
    private struct Owner: Hashable {
        var keyID: String
        var teamID: String
        var publicKey: [UInt8]
        /// Clients with different clocks do not share tokens.
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

    /// The largest number of sources without a client.
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
