package import CarillonWire

/// The addresses that the server gives out.
package struct Addresses: Sendable {
    /// Scheme, host and port, and what path the server is under; no slash at the end.
    package let base: String

    package init(base: String) {
        self.base = base.hasSuffix("/") ? String(base.dropLast()) : base
    }

    package func endpoint(token: String) -> String { "\(base)/push/\(token)" }

    package func message(_ id: MessageID) -> String { "\(base)/message/\(id)" }

    package var socket: String {
        let address = base.hasPrefix("https:") ? "wss:" + base.dropFirst(6) : "ws:" + base.dropFirst(5)
        return "\(address)/"
    }

    /// Scheme, host and port: what a VAPID token must name (RFC 8292 section 2).
    package var origin: String {
        guard let scheme = base.range(of: "://"), let slash = base[scheme.upperBound...].firstIndex(of: "/") else {
            return base
        }
        return String(base[..<slash])
    }

    /// The token of one of our own endpoints; nil for any other address.
    package func token(ofEndpoint text: String) -> String? {
        let prefix = "\(base)/push/"
        guard text.hasPrefix(prefix) else { return nil }
        return String(text.dropFirst(prefix.count).prefix { $0 != "?" && $0 != "/" })
    }
}

extension StringProtocol {
    /// The first place of a text in this one.
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
