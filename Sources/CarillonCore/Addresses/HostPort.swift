/// A host and a port, written as `host:port` or `[v6]:port`.
package struct HostPort: Hashable, Sendable {
    /// A name, or an IP address without brackets.
    package let host: String
    package let port: Int

    package init(_ text: String) throws(CallAddress.Fault) {
        guard !text.contains(where: { "/?#".contains($0) }) else {
            throw CallAddress.Fault(reason: "must not have a scheme, a path, a query or a fragment")
        }
        let host = Self.host(of: text[...])
        guard host.endIndex < text.endIndex else { throw CallAddress.Fault(reason: "must have a port") }
        port = try CallAddress(reading: "http://\(text)").port
        self.host = String(host.hasPrefix("[") ? host.dropFirst().dropLast() : host)
    }

    /// Returns the host at the beginning of a valid text, as it is written there.
    static func host(of text: Substring) -> Substring {
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") { return text[...end] }
        return text.prefix { !":/?#".contains($0) }
    }
}
