/// The permissions of an API key.
package enum KeyRole: String, CaseIterable, Codable, Sendable {
    /// Permits everything, for every app.
    case admin
    /// Permits reading the outcomes of the messages of one app.
    case sender
    /// Permits registering devices of one app.
    case client
}
