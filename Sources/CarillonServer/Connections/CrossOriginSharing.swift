import NIOHTTP1

/// Answers the requests with which a browser finds out whether a page of another origin can use the server (CORS, in the Fetch
/// standard). Only the addresses for senders and devices are shared, and only with the origins that the operator listed.
///
/// This only controls what the browser shows to the page. Each request is authorized like any other request.
struct CrossOriginSharing: Sendable {
    let origins: AllowedOrigins

    /// The CORS headers of the response to one request.
    struct Terms: Equatable {
        /// Nil if the origin is not allowed. The response still must show that it depends on the origin.
        var origin: String?
        var varies: Bool
    }

    /// Returns nil at an address that is never shared, and if no origin is listed.
    func terms(for head: HTTPRequestHead) -> Terms? {
        guard !origins.isEmpty, Self.methods(of: head.uri) != nil else { return nil }
        let asking = head.headers["origin"]
        let isAllowed = asking.count == 1 && origins.allows(asking[0])
        if origins.all { return isAllowed ? Terms(origin: "*", varies: false) : nil }
        return Terms(origin: isAllowed ? asking[0] : nil, varies: true)
    }

    /// Returns the answer to a preflight request; nil if the request is not a preflight or is not allowed.
    func preflight(_ head: HTTPRequestHead) -> HTTPAnswer? {
        guard head.method == .OPTIONS, head.headers.contains(name: "access-control-request-method"),
            terms(for: head)?.origin != nil, let methods = Self.methods(of: head.uri)
        else { return nil }
        return HTTPAnswer(
            status: .noContent,
            headers: [
                "access-control-allow-methods": methods, "access-control-allow-headers": Self.requestHeaders,
                "access-control-max-age": "7200",
            ])
    }

    private static let requestHeaders =
        "Authorization, Content-Encoding, Content-Type, Crypto-Key, Encryption, Idempotency-Key, Last-Event-ID, Prefer, "
        + "Topic, TTL, Urgency"
    fileprivate static let answerHeaders = "Carillon-Outcome, Carillon-Server, Location, Retry-After, TTL, WWW-Authenticate"

    /// Returns the methods of a shared address; nil for any other address.
    private static func methods(of uri: String) -> String? {
        if PublishHandler.token(of: uri) != nil { return "GET, HEAD, POST" }
        let path = uri.prefix { $0 != "?" }
        switch path {
        case "/v1/devices", "/v1/inbox/results": return "POST"
        case "/v1/device": return "DELETE, GET, HEAD"
        case "/v1/device/channels": return "GET, HEAD, POST"
        case "/v1/inbox": return "GET, HEAD"
        case _ where path.hasPrefix("/v1/device/channels/"): return "DELETE"
        case _ where path.hasPrefix("/message/"): return "DELETE, GET, HEAD"
        default: return nil
        }
    }
}

extension HTTPHeaders {
    mutating func add(_ terms: CrossOriginSharing.Terms) {
        if terms.varies { add(name: "vary", value: "origin") }
        guard let origin = terms.origin else { return }
        add(name: "access-control-allow-origin", value: origin)
        add(name: "access-control-expose-headers", value: CrossOriginSharing.answerHeaders)
    }
}
