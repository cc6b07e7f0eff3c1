import ArgumentParser
import CarillonCore

/// The address of a push service: `https://HOST[:PORT]`, or `http://HOST[:PORT]` for HTTP/2 without TLS.
struct ServiceAddress: Hashable, Sendable, CustomStringConvertible {
    var host: String
    var port: Int
    var isSecure = true

    init(host: String, port: Int, isSecure: Bool = true) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
    }

    init(reading text: String) throws(CallAddress.Fault) {
        let url = try ServerURL(text).text
        let address = try CallAddress(reading: url)
        guard address.target == "/" else { throw CallAddress.Fault(reason: "must not have a path") }
        let authority = url.dropFirst(address.isSecure ? 8 : 7)
        let place = try HostPort(address.isPortImplied ? "\(authority):\(address.port)" : String(authority))
        self.init(host: place.host, port: place.port, isSecure: address.isSecure)
    }

    /// Reads the value of an option.
    static func argument(_ text: String) throws -> ServiceAddress {
        do {
            return try ServiceAddress(reading: text)
        } catch {
            throw ValidationError("It \(error.reason).")
        }
    }

    /// Host and port, for messages.
    var place: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// The address, without the port if it is the default of the scheme.
    var description: String {
        let isUsual = port == (isSecure ? 443 : 80)
        return "\(isSecure ? "https" : "http")://\(isUsual ? String(place.dropLast(port.description.count + 1)) : place)"
    }
}
