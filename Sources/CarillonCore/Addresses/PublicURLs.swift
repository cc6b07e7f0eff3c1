/// The addresses of this server: URLs under its public URL, and under earlier public URLs.
package struct PublicURLs: Equatable, Sendable {
    /// The parts of an address of this server.
    package struct Match: Equatable, Sendable {
        /// Whether the address consists of an origin only.
        package let isOrigin: Bool
        /// The part after the public URL, which can have a path; nil if the address is not under the public URL.
        package let path: String?
    }

    private struct Base: Equatable, Sendable {
        /// The origin in normalized form.
        let origin: String
        /// The path without a slash at the end.
        let path: String

        init(_ text: String) {
            let (origin, path) = PublicURLs.split(text)
            self.origin = WebOrigin(origin)?.text ?? String(origin)
            self.path = String(path).decodingUnreserved
        }
    }

    /// Scheme, host, port and path of the present public URL, without a slash at the end.
    package let base: String
    /// Scheme, host and port of the present public URL.
    package let origin: String
    /// Longer paths come first, as one URL can be under another one.
    private let bases: [Base]

    package init(_ base: String, former: [String] = []) {
        let urls = ([base] + former).map { url in
            var url = url[...]
            while url.hasSuffix("/") { url = url.dropLast() }
            return String(url)
        }
        self.base = urls[0]
        origin = Base(urls[0]).origin
        bases = urls.map { Base($0) }.sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// Returns the parts of an address of this server; nil if the address belongs to another server.
    package func match(_ address: String) -> Match? {
        let (start, end) = Self.split(address)
        guard let origin = WebOrigin(start)?.text else { return nil }
        let rest = String(end).decodingUnreserved
        let isOrigin = rest.isEmpty || rest == "/"
        let ours = bases.filter { $0.origin == origin }
        for base in ours where rest.hasPrefix(base.path) {
            let path = rest.dropFirst(base.path.count)
            if path.isEmpty || path.hasPrefix("/") || path.hasPrefix("?") || path.hasPrefix("#") {
                return Match(isOrigin: isOrigin, path: String(path))
            }
        }
        return ours.isEmpty || !isOrigin ? nil : Match(isOrigin: true, path: nil)
    }

    /// Returns the scheme, host and port, and the rest.
    private static func split(_ address: String) -> (origin: Substring, rest: Substring) {
        let scheme = address.prefix { $0 != "/" }
        let start = address.index(scheme.endIndex, offsetBy: 2, limitedBy: address.endIndex) ?? address.endIndex
        let end = address[start...].firstIndex { "/?#".contains($0) } ?? address.endIndex
        return (address[..<end], address[end...])
    }
}
