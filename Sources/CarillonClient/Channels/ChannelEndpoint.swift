#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Where a backend sends the messages of a channel: a URL whose last component is the token.
struct ChannelEndpoint: Hashable, Sendable {
    let text: String
    let token: String
    let host: String

    /// Answers nil for a text that is not an HTTP address with a token at its end.
    init?(_ text: String) {
        guard let components = URLComponents(string: text), components.scheme == "https" || components.scheme == "http",
            let host = components.host, !host.isEmpty, let token = components.path.split(separator: "/").last
        else { return nil }
        self.text = text
        self.token = String(token)
        self.host = host
    }
}
