/// The origin of a page or of a server: its scheme, host and port (RFC 6454 section 4).
package struct WebOrigin: Hashable, Sendable {
    /// `scheme://host` or `scheme://host:port`, in lower case and without a port that the scheme implies.
    package let text: String

    /// Returns nil if the text contains more than an origin. A slash at the end is ignored.
    package init?(_ text: some StringProtocol) {
        var text = text.lowercased()[...]
        if text.hasSuffix("/") { text = text.dropLast() }
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { return nil }
        let scheme = text[..<colon]
        var authority = text[colon...].dropFirst(3)
        guard !scheme.isEmpty, scheme.utf8.allSatisfy(Self.isSchemeByte), !authority.isEmpty,
            authority.utf8.allSatisfy(Self.isAuthorityByte)
        else { return nil }
        for (implied, port) in [("http", ":80"), ("https", ":443"), ("ws", ":80"), ("wss", ":443")]
        where scheme == implied && authority.hasSuffix(port) {
            authority = authority.dropLast(port.count)
        }
        self.text = "\(scheme)://\(authority)"
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"),
            UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    private static func isAuthorityByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: ":"), UInt8(ascii: "_"): true
        default: isSchemeByte(byte)
        }
    }
}
