import CarillonCore
import CarillonWire

/// Counts the connections of addresses and devices, and enforces their limits.
///
/// Connections from this machine are not counted for an address, because a proxy can run there. Behind a proxy that reports the
/// client's address, this address is counted while a request of the client is processed. A device is counted only while one of
/// its requests is processed, because a proxy uses its connections for many devices.
final class ConnectionShares: Sendable {
    struct Limits: Sendable {
        var connectionsPerAddress: Int
        var socketsPerAddress: Int
        /// The largest number of connections of one device, without sockets.
        var connectionsPerDevice = 16
        /// The number of health checks that are answered at the same time on connections beyond all limits.
        var reserve = 16
    }

    /// The limit that a connection exceeds.
    enum RefusedPlace {
        case ofServer
        case ofAddress
    }

    /// Connections beyond a limit that stay open for a moment to receive an answer.
    struct RefusedPlaces: Sendable {
        fileprivate let ofServer = Shares<Int>(limit: 512, of: "refused_of_server")
        fileprivate let ofAddress = Shares<Int>(limit: 64, of: "refused_of_address")

        func take(_ place: RefusedPlace) -> Bool { shares(of: place).take(0) }

        func giveBack(_ place: RefusedPlace) { shares(of: place).giveBack(0) }

        private func shares(of place: RefusedPlace) -> Shares<Int> {
            switch place {
            case .ofServer: ofServer
            case .ofAddress: ofAddress
            }
        }
    }

    let connections: Shares<NetworkAddress>
    let sockets: Shares<NetworkAddress>
    let devices: Shares<DeviceSerial>
    let reserve: Shares<Int>
    let refused = RefusedPlaces()
    /// Whether a proxy reports the addresses of clients.
    let isBehindProxy: Bool

    init(_ limits: Limits, isBehindProxy: Bool) {
        connections = Shares(limit: limits.connectionsPerAddress, of: "connections_of_address")
        sockets = Shares(limit: limits.socketsPerAddress, of: "sockets_of_address")
        devices = Shares(limit: limits.connectionsPerDevice, of: "connections_of_device")
        reserve = Shares(limit: limits.reserve, of: "reserve")
        self.isBehindProxy = isBehindProxy
    }

    /// Counts a socket of an address.
    ///
    /// - Returns: The address for which the socket is counted; nil if it is not counted.
    func takeSocket(of address: NetworkAddress?) throws(Refusal) -> NetworkAddress? {
        guard let address, !address.isLoopback else { return nil }
        guard sockets.take(address.owner) else {
            throw Refusal(
                .rateLimited, "One address can have \(sockets.limit) sockets at a time.", retryAfterSeconds: 10)
        }
        return address.owner
    }
}
