package import CarillonCore
package import CarillonWire

/// The public addresses of the server.
package struct PublicAddresses: Sendable {
    /// Recognizes the addresses of this server.
    package let publicURLs: PublicURLs

    /// - Parameters:
    ///   - base: The public URL: scheme, host, port, and the path of the server.
    ///   - former: Earlier public URLs.
    package init(base: String, former: [String] = []) { publicURLs = PublicURLs(base, former: former) }

    /// The public URL, without a slash at the end.
    package var base: String { publicURLs.base }

    package func endpoint(token: String) -> String { "\(base)/push/\(token)" }

    package func message(_ id: MessageID) -> String { "\(base)/message/\(id)" }

    func attachment(_ id: AttachmentID) -> String { base + AttachmentRoutes.path + "/\(id)" }

    package var socket: String {
        let address = base.hasPrefix("https:") ? "wss:" + base.dropFirst(6) : "ws:" + base.dropFirst(5)
        return "\(address)/"
    }

    /// Returns the token of an endpoint of this server; nil for any other address.
    package func token(ofEndpoint text: String) -> String? {
        guard let path = publicURLs.match(text)?.path, path.hasPrefix("/push/") else { return nil }
        return String(path.dropFirst("/push/".count).prefix { $0 != "?" && $0 != "/" })
    }
}
