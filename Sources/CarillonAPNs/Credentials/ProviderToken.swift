/// A signed token that authenticates a provider. All connections of all clients with one key share it.
///
/// It is a class so that a connection recognises, without a comparison of texts, a token that it has sent before.
final class ProviderToken: Sendable {
    /// The value of the `authorization` header.
    let bearer: String
    /// The number of the token's renewal.
    let generation: Int
    /// Whether the token must not be sent on a connection that has carried another token. It replaces a token that was
    /// refused or would be refused.
    let isForFreshConnections: Bool

    init(bearer: String, generation: Int, isForFreshConnections: Bool = false) {
        self.bearer = bearer
        self.generation = generation
        self.isForFreshConnections = isForFreshConnections
    }
}
