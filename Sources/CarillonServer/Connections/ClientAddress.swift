import CarillonCore
import HTTPTypes
import NIOCore
import NIOHTTP1

/// Determines the address of a client: the peer of the connection, or the address that a proxy reports.
package struct ClientAddress: Sendable {
    /// The header field in which the proxy reports the address, such as `X-Forwarded-For` or `Forwarded`: see
    /// ``ForwardedAddress``.
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

    /// Returns the address that the proxy reports; nil without a proxy, or if its field is absent.
    func forwarded(in headers: HTTPHeaders) -> ForwardedAddress? {
        header.flatMap { ForwardedAddress(lastOf: headers[$0]) }
    }
}

extension NetworkAddress {
    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    /// The address of all clients on Unix sockets. They are on this machine, like a local proxy.
    private static let ofUnixSockets = NetworkAddress.v4(0x7F00_0001)

    /// Returns nil for a value that is not the address of a client.
    init?(_ address: SocketAddress?) {
        // The offsets of the address in sockaddr_in and sockaddr_in6, which are the same on every system.
        switch address {
        case .v4(let address):
            self.init(bytes: withUnsafeBytes(of: address.address) { Array($0[4..<8]) })
        case .v6(let address):
            let bytes = withUnsafeBytes(of: address.address) { Array($0[8..<24]) }
            // An IPv4 address on a socket for both protocols (RFC 4291 section 2.5.5.2).
            self.init(bytes: bytes.starts(with: Self.mapped) ? Array(bytes[12...]) : bytes)
        case .unixDomainSocket:
            self = Self.ofUnixSockets
        case nil:
            return nil
        }
    }
}
