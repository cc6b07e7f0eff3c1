/// How the server notifies a device without a connection about a waiting message.
package enum WakeMode: String, CaseIterable, Sendable {
    /// The server sends no push. The device receives the message when it connects.
    case none
    /// A push wakes the app and shows nothing.
    case background
    /// A push shows an alert.
    case alert
}
