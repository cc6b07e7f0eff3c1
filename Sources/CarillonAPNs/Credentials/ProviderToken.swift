/// A signed token with which a provider shows who it is, as all connections of a client share it.
///
/// It is a class so that a connection knows, without comparing, that it has sent this one before.
final class ProviderToken: Sendable {
    /// The value of the `authorization` header.
    let bearer: String
    /// Counts renewals.
    let generation: Int

    init(bearer: String, generation: Int) {
        self.bearer = bearer
        self.generation = generation
    }
}
