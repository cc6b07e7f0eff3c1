import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How the client reaches a server: one question over HTTP, or a WebSocket that stays. Each attempt resolves the name anew.
protocol ClientTransport: Sendable {
    /// Connects, and hands the connection to the closure; it is closed when the closure ends.
    /// - Throws: ``TransportFault`` when there is no connection to hand over. Faults of a connection that stood are the
    ///   end of its events.
    func withConnection(
        to address: WebAddress, _ body: (WebSocketConnection) async -> Void
    ) async throws(TransportFault)

    /// Asks once, on a connection of its own. No redirect is followed.
    func ask(_ question: WebQuestion) async throws(TransportFault) -> WebAnswer
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
    /// The most bytes that the answer's body may have.
    var answerLimit: Int
    /// How much longer the answer may take than others do.
    var patience: Duration = .zero
}

struct WebAnswer: Sendable {
    var status: Int
    var retryAfter: String?
    var body: Data
    var contentType: String?
    /// The value of `Carillon-Server`.
    var server: String?

    var response: ServerResponse {
        ServerResponse(status: status, contentType: contentType, server: server, body: body)
    }

    /// The wait that the response asks for.
    var wait: Duration? { retryAfter.flatMap { RetryAfter.duration($0, at: Date().milliseconds) } }
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
