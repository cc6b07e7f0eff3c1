/// What a key may do.
package enum KeyRole: String, CaseIterable, Codable, Sendable {
    /// Everything: apps, keys, devices of every app.
    case admin
    /// Ask for the outcome of the messages of one app.
    case sender
    /// Register devices of one app.
    case client
}
