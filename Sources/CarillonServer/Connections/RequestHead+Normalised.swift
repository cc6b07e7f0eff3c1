import CarillonCore
import NIOHTTP1

extension HTTPRequestHead {
    /// Converts equivalent forms of a request to one form, so that later code handles only this form.
    ///
    /// - The target becomes a path, also if the client sent the absolute form, as to a proxy (RFC 9112 section 3.2.2). Repeated
    ///   slashes become one, and a slash at the end is removed.
    /// - `OPTIONS *`, which concerns the server in general (RFC 9110 section 9.3.7), becomes `OPTIONS /`.
    /// - Percent-encoded unreserved characters are decoded (RFC 3986 section 6.2.2.2).
    /// - White space after the value of a field is removed (RFC 9112 section 5.1).
    mutating func normalise() {
        takeOriginForm()
        if method == .OPTIONS, uri == "*" { uri = "/" }
        uri = uri.decodingUnreserved
        joinSlashes()
        trimValues()
    }

    private mutating func takeOriginForm() {
        guard uri.utf8.first != Self.slash, let scheme = uri.firstRange(of: "://") else { return }
        let rest = uri[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
        uri = rest.hasPrefix("/") ? String(rest) : "/\(rest)"
    }

    private mutating func joinSlashes() {
        let target = uri.utf8
        let end = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        let path = target[..<end]
        var isAfterSlash = false
        var isPlain = path.count < 2 || path.last != Self.slash
        for byte in path where isPlain {
            if isAfterSlash, byte == Self.slash { isPlain = false }
            isAfterSlash = byte == Self.slash
        }
        if isPlain { return }
        let parts = uri[..<end].split(separator: "/")
        uri = "\(path.first == Self.slash ? "/" : "")\(parts.joined(separator: "/"))\(uri[end...])"
    }

    private static let slash = UInt8(ascii: "/")

    private mutating func trimValues() {
        guard headers.contains(where: { $0.value.hasSpaceAround }) else { return }
        headers = HTTPHeaders(headers.map { ($0.name, String($0.value.trimmed)) })
    }
}

extension String {
    fileprivate var hasSpaceAround: Bool { utf8.first.isSpace || utf8.last.isSpace }

    fileprivate var trimmed: Substring {
        var rest = self[...]
        while rest.utf8.first.isSpace { rest.removeFirst() }
        while rest.utf8.last.isSpace { rest.removeLast() }
        return rest
    }
}

extension UInt8? {
    fileprivate var isSpace: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}
