import CarillonBasics

/// A subscription of the device fired: to be acknowledged like a notification.
package struct FiredFrame: Equatable, Sendable {
    /// The envelope's identifier.
    package var version: String
    /// JSON; see ``notification``.
    package var body: [UInt8]

    package init(version: String, body: [UInt8]) {
        self.version = version
        self.body = body
    }

    /// Nil where the body is none.
    package var notification: FiredNotification? { JSONValue(parsing: body).flatMap(FiredNotification.init) }
}
