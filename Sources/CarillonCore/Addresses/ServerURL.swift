/// The address of a Carillon server: its scheme, host and port, and the path with which all of its paths begin.
package struct ServerURL: Hashable, Sendable {
    /// Scheme and host are in lower case. A port that the scheme implies and slashes at the end are left out.
    package let text: String

    package init(_ text: String) throws(CallAddress.Fault) {
        let address = try CallAddress(reading: text)
        guard !address.target.contains("?") else { throw CallAddress.Fault(reason: "must not have a query") }
        var path = address.target[...]
        while path.hasSuffix("/") { path = path.dropLast() }
        guard Self.isPath(path) else {
            throw CallAddress.Fault(reason: "must have a path of letters, digits, /-._~!$&'()*+;=:@ and %XX")
        }
        let scheme = address.isSecure ? "https" : "http"
        let host = HostPort.host(of: text.dropFirst(scheme.utf8.count + 3)).lowercased()
        let port = address.isPortImplied ? "" : ":\(address.port)"
        self.text = "\(scheme)://\(host)\(port)\(path)"
    }

    /// Whether the text has the characters of a path (RFC 3986 section 3.3), without the comma, which separates URLs in a list.
    private static func isPath(_ text: Substring) -> Bool {
        var digits = 0
        for byte in text.utf8 {
            if digits > 0 {
                guard byte.isHexadecimalDigit else { return false }
                digits -= 1
                continue
            }
            switch byte {
            case UInt8(ascii: "%"): digits = 2
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                continue
            default: guard marks.contains(byte) else { return false }
            }
        }
        return digits == 0
    }

    private static let marks = Set("/-._~!$&'()*+;=:@".utf8)
}
