/// A change of the device's status at the server. The client acknowledges this frame like a notification.
package struct DeviceStatusFrame: Equatable, Sendable {
    /// The envelope's identifier.
    package var version: String
    /// `registered` or `suspended`.
    package var status: String
    /// The reason of a suspension.
    package var reason: String?
    /// The time of the change, in milliseconds since 1970.
    package var at: Int64

    package init(version: String, status: String, reason: String? = nil, at: Int64) {
        self.version = version
        self.status = status
        self.reason = reason
        self.at = at
    }
}
