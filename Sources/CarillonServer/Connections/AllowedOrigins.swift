package import CarillonCore

/// The origins of web pages that can use the server from a browser: the server's own origin, and the origins that the operator
/// lists.
///
/// This check protects users whose browser can reach the server from other pages that they visit. It does not authenticate
/// anybody: every request still needs its secret, and a client other than a browser can send any origin.
package final class AllowedOrigins: Equatable, Sendable {
    /// A text is not a valid list of origins. The text is not repeated, because it can contain a password.
    package struct Fault: Error, Equatable {
        /// The invalid part and the rule, as a clause that follows "the list".
        package let reason: String
    }

    package static let none = AllowedOrigins(publicURLs: nil, listed: [], all: false)

    private let publicURLs: PublicURLs?
    private let listed: Set<String>
    /// Whether all origins are allowed.
    let all: Bool

    private init(publicURLs: PublicURLs?, listed: Set<String>, all: Bool) {
        self.publicURLs = publicURLs
        self.listed = listed
        self.all = all
    }

    /// - Parameters:
    ///   - publicURLs: The server's own addresses.
    ///   - list: Origins with commas between, such as `https://app.example.com`, or `*` for all.
    package convenience init(publicURLs: PublicURLs? = nil, listing list: String) throws(Fault) {
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
        self.init(publicURLs: publicURLs, listed: listed, all: all)
    }

    /// Returns the same list for a server with these addresses.
    func on(publicURLs: PublicURLs) -> AllowedOrigins { AllowedOrigins(publicURLs: publicURLs, listed: listed, all: all) }

    package static func == (left: AllowedOrigins, right: AllowedOrigins) -> Bool {
        left.publicURLs == right.publicURLs && left.listed == right.listed && left.all == right.all
    }

    /// Whether the operator listed no origin.
    var isEmpty: Bool { listed.isEmpty && !all }

    /// Whether pages of another origin than the server's can read responses.
    func allows(_ origin: String) -> Bool { all || WebOrigin(origin).map { listed.contains($0.text) } == true }

    /// Whether a handshake with these values of `Origin` is accepted.
    ///
    /// Clients other than browsers send no origin. Firefox's push client sends the push server as `wss://…`, and no page has such
    /// an origin.
    func admitSocket(of origins: [String]) -> Bool {
        guard let text = origins.first else { return true }
        guard origins.count == 1, let origin = WebOrigin(text)?.text else { return all }
        if all || listed.contains(origin) || publicURLs?.match(origin)?.isOrigin == true { return true }
        return origin.hasPrefix("wss:") || origin.hasPrefix("ws:")
    }

    /// Returns an origin that a page can have. Schemes other than HTTP have hosts of other forms.
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
