/// The service of Apple that a token belongs to, or another host with the same protocol.
public struct APNsEnvironment: Hashable, Sendable {
    struct Address: Hashable, Sendable {
        var host: String
        var port: Int
        var isSecure = true

        /// The host in the form of a URI (RFC 3986 section 3.2.2).
        var uriHost: String { host.contains(":") ? "[\(host)]" : host }

        func check() throws(APNsError) {
            guard (1...253).contains(host.utf8.count) else {
                throw APNsError(
                    .configurationInvalid, "The environment's host has \(host.utf8.count) bytes; it must have 1 to 253.")
            }
            guard NotificationRules.isPrintable(host) else {
                throw APNsError(
                    .configurationInvalid,
                    "The environment's host \"\(host)\" must be printable ASCII without spaces, like push.example.com.")
            }
            guard (1...65_535).contains(port) else {
                throw APNsError(.configurationInvalid, "The environment's port is \(port); it must be from 1 to 65535.")
            }
        }
    }

    /// The address for pushes and broadcasts.
    let push: Address
    /// The address for the management of broadcast channels.
    let management: Address

    /// The environment of apps from the App Store and TestFlight.
    public static let production = APNsEnvironment(
        push: Address(host: "api.push.apple.com", port: 443),
        management: Address(host: "api-manage-broadcast.push.apple.com", port: 2196))

    /// The environment of apps that were built for development.
    public static let sandbox = APNsEnvironment(
        push: Address(host: "api.sandbox.push.apple.com", port: 443),
        management: Address(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195))

    /// Another host, such as a simulator or a relay.
    /// - Parameters:
    ///   - host: the name or address, as in the host's certificate.
    ///   - port: the port for pushes and broadcasts.
    ///   - managementPort: the port for the management of broadcast channels; nil for the same port.
    ///   - isSecure: false for HTTP/2 without TLS, for a process on the same machine.
    public static func custom(
        host: String, port: Int, managementPort: Int? = nil, isSecure: Bool = true
    ) -> APNsEnvironment {
        APNsEnvironment(
            push: Address(host: host, port: port, isSecure: isSecure),
            management: Address(host: host, port: managementPort ?? port, isSecure: isSecure))
    }

    /// The same environment with port 2197, which some firewalls allow when they block 443.
    public var alternativePort: APNsEnvironment {
        var address = push
        address.port = 2197
        return APNsEnvironment(push: address, management: management)
    }
}
