import CarillonBasics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The parts of an HTTP or WebSocket URL.
struct WebAddress: Hashable, Sendable {
    let text: String
    let isSecure: Bool
    /// A name, or an IP address without brackets.
    let host: String
    let port: Int
    /// The path with its query, beginning with a slash.
    let target: String
    /// The host in the form of the `Host` header, with the port if it is not the default of the scheme.
    let authority: String

    /// The base address of a server.
    init?(http text: String) { self.init(text, plain: "http", secure: "https") }

    /// The address of a socket.
    init?(webSocket text: String) { self.init(text, plain: "ws", secure: "wss") }

    /// The host and the port, which are the same for HTTP and WebSocket.
    var place: String { "\(host):\(port)" }

    /// The address without its path.
    var origin: String { text.prefix { $0 != ":" }.lowercased() + "://" + authority }

    private init?(_ text: String, plain: String, secure: String) {
        // `URLComponents` would encode white space and control characters.
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != 0x5C }),
            let components = URLComponents(string: text), let scheme = components.scheme?.lowercased(),
            scheme == plain || scheme == secure, let host = components.host, !host.isEmpty,
            components.user == nil, components.password == nil, components.fragment == nil
        else { return nil }
        self.text = text
        isSecure = scheme == secure
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        self.host = bare
        let ordinary = isSecure ? 443 : 80
        port = components.port ?? ordinary
        guard (1...65_535).contains(port) else { return nil }
        let path = components.percentEncodedPath.isEmpty ? "/" : components.percentEncodedPath
        target = path + (components.percentEncodedQuery.map { "?" + $0 } ?? "")
        authority = (bare.contains(":") ? "[\(bare)]" : bare) + (port == ordinary ? "" : ":\(port)")
    }
}

extension String {
    /// The text as a value of a query. All characters are encoded except the unreserved ones of RFC 3986 section 2.3.
    var queryEncoded: String {
        utf8.reduce(into: "") { encoded, byte in
            let character = Character(Unicode.Scalar(byte))
            if byte < 0x80, character.isLetter || character.isNumber || "-._~".contains(character) {
                encoded.append(character)
            } else {
                encoded += "%" + Hexadecimal.encode([byte]).uppercased()
            }
        }
    }
}
