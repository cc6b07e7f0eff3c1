import CarillonCore
import HTTPTypes
import NIOCore
import NIOHTTP1

/// Finds out from which address somebody comes: the peer of the connection, or whom a proxy says that it forwards for.
package struct ClientAddress: Sendable {
    /// The field in which the proxy writes it, such as `X-Forwarded-For`. Its last value counts, which the nearest proxy
    /// wrote; what came before it anybody can have written.
    package var header: String?

    package init(header: String? = nil) { self.header = header }

    func of(_ connection: any NIOCore.Channel, _ fields: HTTPFields) -> NetworkAddress? {
        let forwarded = header.flatMap { HTTPField.Name($0) }.flatMap { Self.last(of: fields[values: $0]) }
        return forwarded ?? NetworkAddress(connection.remoteAddress)
    }

    /// What the proxy says; nil without one, or when it says nothing.
    func forwarded(in headers: HTTPHeaders) -> NetworkAddress? { header.flatMap { Self.last(of: headers[$0]) } }

    private static func last(of values: [String]) -> NetworkAddress? {
        guard let last = values.last?.split(separator: ",").last else { return nil }
        var text = last.drop { $0 == " " }
        while text.last == " " { text = text.dropLast() }
        if text.first == "[", text.last == "]" { text = text.dropFirst().dropLast() }
        return NetworkAddress(text)
    }
}

extension NetworkAddress {
    /// Nil for what is no IP address, such as the path of a socket.
    init?(_ address: SocketAddress?) {
        guard let text = address?.ipAddress else { return nil }
        let mapped = "::ffff:"
        self.init(text.hasPrefix(mapped) && text.contains(".") ? text.dropFirst(mapped.count) : text[...])
    }
}
