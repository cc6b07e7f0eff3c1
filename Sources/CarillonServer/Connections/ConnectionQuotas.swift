import CarillonCore
import CarillonWire

/// Counts the connections of addresses and devices, and enforces their limits.
///
/// Connections from this machine are not counted for an address, because a proxy can run there. Behind a proxy that reports the
/// client's address, this address is counted while a request of the client is processed. A device is counted only while one of
/// its requests is processed, because a proxy uses its connections for many devices.
final class ConnectionQuotas: Sendable {
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
        fileprivate let ofServer = Quota<Int>(limit: 512, of: "refused_of_server")
        fileprivate let ofAddress = Quota<Int>(limit: 64, of: "refused_of_address")

        func take(_ place: RefusedPlace) -> Bool { quota(of: place).take(0) }

        func release(_ place: RefusedPlace) { quota(of: place).release(0) }

        private func quota(of place: RefusedPlace) -> Quota<Int> {
            switch place {
            case .ofServer: ofServer
            case .ofAddress: ofAddress
            }
        }
    }

    let connections: Quota<NetworkAddress>
    let sockets: Quota<NetworkAddress>
    let devices: Quota<DeviceSerial>
    let reserve: Quota<Int>
    let refused = RefusedPlaces()
    /// Whether a proxy reports the addresses of clients.
    let isBehindProxy: Bool

    init(_ limits: Limits, isBehindProxy: Bool) {
        connections = Quota(limit: limits.connectionsPerAddress, of: "connections_of_address")
        sockets = Quota(limit: limits.socketsPerAddress, of: "sockets_of_address")
        devices = Quota(limit: limits.connectionsPerDevice, of: "connections_of_device")
        reserve = Quota(limit: limits.reserve, of: "reserve")
        self.isBehindProxy = isBehindProxy
    }

    /// Counts a socket of an address.
    ///
    /// - Returns: The address for which the socket is counted; nil if it is not counted.
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
