package import CarillonCore

/// Which web pages may use the server from a browser: those of its own origin, and those that the operator lists.
///
/// This guards people whose browser can reach the server against pages that they happen to visit. It says nothing about
/// who may do what: secrets are asked for as ever, and whoever is no browser can claim any origin.
package final class AllowedOrigins: Equatable, Sendable {
    /// A text that is no list of origins. The text is left out, as it can have a password.
    package struct Fault: Error, Equatable {
        /// The part and the rule, as they follow "the list".
        package let reason: String
    }

    package static let none = AllowedOrigins(own: nil, listed: [], all: false)

    private let own: OwnAddresses?
    private let listed: Set<String>
    /// Whether pages of every origin may.
    let all: Bool

    private init(own: OwnAddresses?, listed: Set<String>, all: Bool) {
        self.own = own
        self.listed = listed
        self.all = all
    }

    /// - Parameters:
    ///   - own: The server's own addresses.
    ///   - list: Origins with commas between, such as `https://app.example.com`, or `*` for all.
    package convenience init(own: OwnAddresses? = nil, listing list: String) throws(Fault) {
        var listed: Set<String> = []
        var all = false
        for part in list.isEmpty ? [] : list.split(separator: ",", omittingEmptySubsequences: false) {
            let text = part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
            if String(text) == "*" {
                all = true
            } else {
                listed.insert(try Self.origin(String(text)))
            }
        }
        self.init(own: own, listed: listed, all: all)
    }

    /// The same list, on a server with these addresses.
    func on(own: OwnAddresses) -> AllowedOrigins { AllowedOrigins(own: own, listed: listed, all: all) }

    package static func == (left: AllowedOrigins, right: AllowedOrigins) -> Bool {
        left.own == right.own && left.listed == right.listed && left.all == right.all
    }

    /// Whether the operator listed any.
    var isEmpty: Bool { listed.isEmpty && !all }

    /// Whether pages of an origin other than the server's own may read answers.
    func allows(_ origin: String) -> Bool { all || WebOrigin(origin).map { listed.contains($0.text) } == true }

    /// Whether a handshake with these values of `Origin` may become a socket.
    ///
    /// What is no browser sends none. Firefox's own push client names the push server, as `wss://…`: no page has such an
    /// origin.
    func admitSocket(of origins: [String]) -> Bool {
        guard let text = origins.first else { return true }
        guard origins.count == 1, let origin = WebOrigin(text)?.text else { return all }
        if all || listed.contains(origin) || own?.match(origin)?.isOrigin == true { return true }
        return origin.hasPrefix("wss:") || origin.hasPrefix("ws:")
    }

    /// Returns an origin that can be that of a page. Schemes other than HTTP have hosts of their own kinds.
    private static func origin(_ text: String) throws(Fault) -> String {
        let scheme = text.prefix { $0 != ":" }.lowercased()
        if scheme == "http" || scheme == "https" {
            do {
                _ = try CallAddress(reading: text)
            } catch {
                throw Fault(reason: "has an origin that \(error.reason)")
            }
        }
        guard let origin = WebOrigin(text)?.text else {
            throw Fault(
                reason:
                    "has an element that is not an origin: an origin has a scheme and a host, and no path, query or fragment"
            )
        }
        return origin
    }
}
