package import CarillonCore
package import CarillonWire

/// The addresses that the server gives out.
package struct Addresses: Sendable {
    /// Which addresses are this server's.
    package let own: OwnAddresses

    /// - Parameters:
    ///   - base: The public URL: scheme, host and port, and the path that the server is under.
    ///   - former: Other public URLs, of earlier times.
    package init(base: String, former: [String] = []) { own = OwnAddresses(base, former: former) }

    /// The public URL, without a slash at the end.
    package var base: String { own.base }

    package func endpoint(token: String) -> String { "\(base)/push/\(token)" }

    package func message(_ id: MessageID) -> String { "\(base)/message/\(id)" }

    func attachment(_ id: AttachmentID) -> String { base + AttachmentRoutes.path + "/\(id)" }

    package var socket: String {
        let address = base.hasPrefix("https:") ? "wss:" + base.dropFirst(6) : "ws:" + base.dropFirst(5)
        return "\(address)/"
    }

    /// Returns the token of an endpoint that this server gave out; nil for any other address.
    package func token(ofEndpoint text: String) -> String? {
        guard let path = own.match(text)?.path, path.hasPrefix("/push/") else { return nil }
        return String(path.dropFirst("/push/".count).prefix { $0 != "?" && $0 != "/" })
    }
}
