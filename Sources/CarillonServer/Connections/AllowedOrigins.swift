import CarillonCore

/// Which web pages may use the server from a browser: those of its own origin, and those that the operator lists.
///
/// This guards people whose browser can reach the server against pages that they happen to visit. It says nothing about
/// who may do what: secrets are asked for as ever, and whoever is no browser can claim any origin.
package final class AllowedOrigins: Equatable, Sendable {
    /// A text that is no list of origins.
    package struct Fault: Error, Equatable {
        package let text: String
    }

    package static let none = AllowedOrigins(own: "", listed: [], all: false)

    private let own: String
    private let listed: Set<String>
    /// Whether pages of every origin may.
    let all: Bool

    private init(own: String, listed: Set<String>, all: Bool) {
        self.own = own
        self.listed = listed
        self.all = all
    }

    /// - Parameters:
    ///   - own: The server's own origin, as its public address has it.
    ///   - list: Origins with commas between, such as `https://app.example.com`, or `*` for all.
    package convenience init(own: String = "", listing list: String) throws(Fault) {
        var listed: Set<String> = []
        var all = false
        for part in list.split(separator: ",") {
            let text = part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
            if String(text) == "*" {
                all = true
            } else if let origin = Self.normalised(String(text)), Self.isReachable(origin) {
                listed.insert(origin)
            } else {
                throw Fault(text: String(text))
            }
        }
        self.init(own: Self.normalised(own) ?? own, listed: listed, all: all)
    }

    /// The same list, on a server of this origin.
    func on(own: String) -> AllowedOrigins {
        AllowedOrigins(own: Self.normalised(own) ?? own, listed: listed, all: all)
    }

    package static func == (left: AllowedOrigins, right: AllowedOrigins) -> Bool {
        left.own == right.own && left.listed == right.listed && left.all == right.all
    }

    /// Whether the operator listed any.
    var isEmpty: Bool { listed.isEmpty && !all }

    /// Whether pages of an origin other than the server's own may read answers.
    func allows(_ origin: String) -> Bool { all || Self.normalised(origin).map(listed.contains) == true }

    /// Whether a handshake with these values of `Origin` may become a socket.
    ///
    /// What is no browser sends none. Firefox's own push client names the push server, as `wss://…`: no page has such an
    /// origin.
    func admitSocket(of origins: [String]) -> Bool {
        guard let text = origins.first else { return true }
        guard origins.count == 1, let origin = Self.normalised(text) else { return all }
        return all || origin == own || listed.contains(origin) || origin.hasPrefix("wss:") || origin.hasPrefix("ws:")
    }

    /// `scheme://host` or `scheme://host:port`, in small letters and without a port that the scheme implies; nil for
    /// anything else. A slash at the end is taken off.
    static func normalised(_ text: String) -> String? {
        var text = text.lowercased()[...]
        if text.hasSuffix("/") { text = text.dropLast() }
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { return nil }
        let scheme = text[..<colon]
        var authority = text[colon...].dropFirst(3)
        guard !scheme.isEmpty, scheme.utf8.allSatisfy(isSchemeByte), !authority.isEmpty,
            authority.utf8.allSatisfy(isAuthorityByte)
        else { return nil }
        for (implied, ports) in [("http", ":80"), ("https", ":443"), ("ws", ":80"), ("wss", ":443")]
        where scheme == implied && authority.hasSuffix(ports) {
            authority = authority.dropLast(ports.count)
        }
        return "\(scheme)://\(authority)"
    }

    /// Whether an origin can be that of a page: schemes other than HTTP have hosts of their own kinds.
    private static func isReachable(_ origin: String) -> Bool {
        guard origin.hasPrefix("http:") || origin.hasPrefix("https:") else { return true }
        return (try? CallAddress(reading: origin)) != nil
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
