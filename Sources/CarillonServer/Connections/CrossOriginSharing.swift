import NIOHTTP1

/// What a browser asks and is told before a page of another origin may send and receive (CORS, of the Fetch standard):
/// at the sender's and the device's addresses only, and for the origins that the operator listed.
///
/// It only tells the browser what the page may see. Each request is authorized as if it came from anywhere else.
struct CrossOriginSharing: Sendable {
    let origins: AllowedOrigins

    /// What the answer to one request says.
    struct Terms: Equatable {
        /// Nil when nothing is granted; that it might have been for another origin must be said nevertheless.
        var origin: String?
        var varies: Bool
    }

    /// Nil at an address that is never shared, and while no origin is listed.
    func terms(for head: HTTPRequestHead) -> Terms? {
        guard !origins.isEmpty, Self.methods(of: head.uri) != nil else { return nil }
        let asking = head.headers["origin"]
        let isAllowed = asking.count == 1 && origins.allows(asking[0])
        if origins.all { return isAllowed ? Terms(origin: "*", varies: false) : nil }
        return Terms(origin: isAllowed ? asking[0] : nil, varies: true)
    }

    /// The answer to the question that comes before the request; nil when this is none, or the answer is not yes.
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

    /// What an address that is shared takes; nil for any other address.
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
