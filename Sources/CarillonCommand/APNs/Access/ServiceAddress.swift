import Foundation

/// Where a push service is reached: `https://HOST[:PORT]`, or `http://HOST[:PORT]` for HTTP/2 without TLS.
struct ServiceAddress: Hashable, Sendable, CustomStringConvertible {
    var host: String
    var port: Int
    var isSecure = true

    init(host: String, port: Int, isSecure: Bool = true) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
    }

    init?(_ text: String) {
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
            scheme == "https" || scheme == "http", let host = parts.host, !host.isEmpty,
            parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil, parts.user == nil
        else { return nil }
        let isSecure = scheme == "https"
        let port = parts.port ?? (isSecure ? 443 : 80)
        guard (1...65_535).contains(port) else { return nil }
        // An IPv6 address stands in brackets in an address, and without them everywhere else.
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        self.init(host: isBracketed ? String(host.dropFirst().dropLast()) : host, port: port, isSecure: isSecure)
    }

    /// Host and port, as faults name them.
    var place: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// The address; the port is left out where it goes without saying.
    var description: String {
        let isUsual = port == (isSecure ? 443 : 80)
        return "\(isSecure ? "https" : "http")://\(isUsual ? String(place.dropLast(port.description.count + 1)) : place)"
    }
}
