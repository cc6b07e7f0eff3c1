#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The URL to which a backend posts the messages of a channel. Its last path component is the channel token.
struct ChannelEndpoint: Hashable, Sendable {
    let text: String
    let token: String
    let host: String

    /// Returns nil if the text is not an HTTP or HTTPS URL with a token at its end.
    init?(_ text: String) {
        guard let components = URLComponents(string: text), components.scheme == "https" || components.scheme == "http",
            let host = components.host, !host.isEmpty, let token = components.path.split(separator: "/").last
        else { return nil }
        self.text = text
        self.token = String(token)
        self.host = host
    }
}
