import CarillonCore
import CarillonWire

/// Whose the connections of a server are, and how many one address and one device may have.
///
/// Connections from this machine have no share of an address: a proxy may run there. Behind a proxy that names the client's address,
/// that address counts, while a request of the client is answered. A device counts while a request of it is answered: a proxy's connections are
/// used for many devices.
final class ConnectionShares: Sendable {
    struct Limits: Sendable {
        var connectionsPerAddress: Int
        var socketsPerAddress: Int
        /// Connections of one device that are not sockets.
        var connectionsPerDevice = 16
        /// Health checks that are answered at a time on connections beyond all limits.
        var reserve = 16
    }

    /// Why a connection has no place.
    enum RefusedPlace {
        case ofServer
        case ofAddress
    }

    /// Connections beyond a limit that wait for a moment to be answered.
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
                .rateLimited, "One address can have up to \(sockets.limit) sockets at a time; close one, or retry later.",
                retryAfterSeconds: 10)
        }
        return address.owner
    }
}
