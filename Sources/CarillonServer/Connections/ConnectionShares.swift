import CarillonCore
import CarillonWire

/// Whose the connections of a server are, and how many one address and one device may have.
///
/// Connections from this machine have no share of an address: a proxy may run there. Behind a proxy that names the client's address,
/// that address counts, while a request of the client is answered.
final class ConnectionShares: Sendable {
    struct Limits: Sendable {
        var connectionsPerAddress: Int
        var socketsPerAddress: Int
        /// Connections of one device that are not sockets.
        var connectionsPerDevice = 16
        /// Connections beyond all limits, for health checks.
        var reserve = 16
    }

    let connections: Shares<NetworkAddress>
    let sockets: Shares<NetworkAddress>
    let devices: Shares<DeviceSerial>
    let reserve: Shares<Int>
    /// Whether a proxy names the addresses of clients.
    let isBehindProxy: Bool

    init(_ limits: Limits, isBehindProxy: Bool) {
        connections = Shares(limit: limits.connectionsPerAddress, of: "connections_of_address")
        sockets = Shares(limit: limits.socketsPerAddress, of: "sockets_of_address")
        devices = Shares(limit: limits.connectionsPerDevice, of: "connections_of_device")
        reserve = Shares(limit: limits.reserve, of: "reserve")
        self.isBehindProxy = isBehindProxy
    }

    /// Takes a socket of an address.
    ///
    /// - Returns: The address that gives it back, nil if it has no share.
    func takeSocket(of address: NetworkAddress?) throws(Refusal) -> NetworkAddress? {
        guard let address, !address.isLoopback else { return nil }
        guard sockets.take(address.owner) else {
            throw Refusal(
                .rateLimited, "One address can have \(sockets.limit) sockets at a time.", retryAfterSeconds: 10)
        }
        return address.owner
    }
}
