import CarillonBasics

/// A firing of an item subscription of the device. The client acknowledges this frame like a notification.
package struct FiredFrame: Equatable, Sendable {
    /// The envelope's identifier.
    package var version: String
    /// The JSON of ``notification``.
    package var body: [UInt8]

    package init(version: String, body: [UInt8]) {
        self.version = version
        self.body = body
    }

    /// The notification in the body; nil if the body is not valid.
    package var notification: FiredNotification? { JSONValue(parsing: body).flatMap(FiredNotification.init) }
}
