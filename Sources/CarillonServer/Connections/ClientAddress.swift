import CarillonCore
import HTTPTypes
import NIOCore
import NIOHTTP1

/// Finds out from which address somebody comes: the peer of the connection, or whom a proxy says that it forwards for.
package struct ClientAddress: Sendable {
    /// The field in which the proxy writes it, such as `X-Forwarded-For` or `Forwarded`: see ``ForwardedAddress``.
    package var header: String?

    package init(header: String? = nil) { self.header = header }

    func of(_ origin: RequestOrigin, _ fields: HTTPFields) -> NetworkAddress? {
        switch origin {
        case .connection(let connection):
            let forwarded = header.flatMap { HTTPField.Name($0) }.flatMap { ForwardedAddress(lastOf: fields[values: $0]) }
            return forwarded?.address ?? NetworkAddress(connection.remoteAddress)
        case .entry(let address): return address
        }
    }

    /// Returns what the proxy says; nil without a proxy, or if its field is absent.
    func forwarded(in headers: HTTPHeaders) -> ForwardedAddress? {
        header.flatMap { ForwardedAddress(lastOf: headers[$0]) }
    }
}

extension NetworkAddress {
    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    /// What all clients on Unix sockets count as. They are on this machine, as a proxy is.
    private static let ofUnixSockets = NetworkAddress.v4(0x7F00_0001)

    /// Nil for what is no address of a client.
    init?(_ address: SocketAddress?) {
        // Where the address is in sockaddr_in and sockaddr_in6, on every system.
        switch address {
        case .v4(let address):
            self.init(bytes: withUnsafeBytes(of: address.address) { Array($0[4..<8]) })
        case .v6(let address):
            let bytes = withUnsafeBytes(of: address.address) { Array($0[8..<24]) }
            // An IPv4 address that came over a socket for both (RFC 4291 section 2.5.5.2).
            self.init(bytes: bytes.starts(with: Self.mapped) ? Array(bytes[12...]) : bytes)
        case .unixDomainSocket:
            self = Self.ofUnixSockets
        case nil:
            return nil
        }
    }
}
