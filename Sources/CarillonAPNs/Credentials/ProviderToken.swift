/// A signed token with which a provider shows who it is, as all connections of all clients with one key share it.
///
/// It is a class so that a connection knows, without comparing, that it has sent this one before.
final class ProviderToken: Sendable {
    /// The value of the `authorization` header.
    let bearer: String
    /// Counts renewals.
    let generation: Int
    /// Whether no connection may carry it that carried another token: it replaces one that was, or would be, refused.
    let isForFreshConnections: Bool

    init(bearer: String, generation: Int, isForFreshConnections: Bool = false) {
        self.bearer = bearer
        self.generation = generation
        self.isForFreshConnections = isForFreshConnections
    }
}
