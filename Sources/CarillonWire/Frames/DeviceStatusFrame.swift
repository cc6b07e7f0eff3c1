/// What became of a device at the server: to be acknowledged like a notification.
package struct DeviceStatusFrame: Equatable, Sendable {
    /// The envelope's identifier.
    package var version: String
    /// `registered` or `suspended`.
    package var status: String
    /// Why it is suspended.
    package var reason: String?
    /// Since when, in milliseconds since 1970.
    package var at: Int64

    package init(version: String, status: String, reason: String? = nil, at: Int64) {
        self.version = version
        self.status = status
        self.reason = reason
        self.at = at
    }
}
