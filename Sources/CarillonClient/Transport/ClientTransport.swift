import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Sends one request over HTTP, on a connection of its own. Each attempt resolves the name anew.
protocol WebTransport: Sendable {
    /// Sends one request. No redirect is followed.
    func ask(_ question: WebQuestion) async throws(TransportFault) -> WebAnswer
}

/// How the client reaches a server: one request over HTTP, or a WebSocket that stays.
protocol ClientTransport: WebTransport {
    /// Connects, and passes the connection to the closure; it is closed when the closure ends.
    /// - Throws: ``TransportFault`` if there is no connection. Faults of an open connection are the end of its events.
    func withConnection(
        to address: WebAddress, _ body: (WebSocketConnection) async -> Void
    ) async throws(TransportFault)
}

/// One request over HTTP.
struct WebQuestion: Sendable {
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
    /// The most bytes that the answer's body may have. The transport drops a longer body, and keeps the status and the headers.
    var answerLimit: Int
    /// How much longer the answer may take than others do.
    var patience: Duration = .zero
}

struct WebAnswer: Sendable {
    var status: Int
    /// The header fields by their names in lower case; the first of each name.
    var headers: [String: String]
    /// Empty if the transport dropped it, or if it is a file.
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

/// Why there is no connection, or no answer.
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
