import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Sends one request over HTTP, on a connection of its own. Each attempt resolves the host name again.
protocol WebTransport: Sendable {
    /// Sends one request. No redirect is followed.
    func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer
}

/// The connections of the client to a server: single HTTP requests, and a permanent WebSocket.
protocol ClientTransport: WebTransport {
    /// Connects, and passes the connection to the closure. The connection is closed when the closure ends.
    /// - Throws: ``TransportFault`` if the connection cannot be opened. A fault of an open connection ends its events.
    func withConnection(
        to address: WebAddress, _ body: (WebSocketConnection) async -> Void
    ) async throws(TransportFault)
}

/// One request over HTTP.
struct WebRequest: Sendable {
    enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"
        case delete = "DELETE"
    }

    var method: Method
    var address: WebAddress
    var bearer: String?
    var json: Data?
    /// The maximum size of the response's body, in bytes. The transport drops a longer body, and keeps the status and the
    /// headers.
    var answerLimit: Int
    /// The additional time for the response, beyond the time limit of other requests.
    var patience: Duration = .zero
}

struct WebAnswer: Sendable {
    var status: Int
    /// The header fields by their names in lower case: the first field of each name.
    var headers: [String: String]
    /// The body. It is empty if the transport dropped it, or if it is a file.
    var body = Data()

    func response(isHead: Bool = false) -> ServerResponse {
        ServerResponse(
            status: status, contentType: headers["content-type"], server: headers[HeaderNames.server.lowercased()],
            body: body,
            isHead: isHead)
    }

    /// The wait that the response asks for.
    var wait: Duration? { headers["retry-after"].flatMap { RetryAfter.duration($0, at: Date().milliseconds) } }
}

/// The reason why there is no connection or no response.
struct TransportFault: Error {
    enum Kind: Sendable {
        case unreachable
        case timeOut
        /// The host answered, but TLS or HTTP failed.
        case reachedServer
        case refusedUpgrade
    }

    let kind: Kind
    let cause: (any Error)?

    init(_ kind: Kind, _ cause: (any Error)?) {
        self.kind = kind
        self.cause = cause
    }
}
