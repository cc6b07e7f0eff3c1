/// Why a connection ended, or accepts no more pushes.
struct ConnectionFault: Error, Equatable, Sendable {
    enum Kind: Equatable, Sendable {
        /// APNs sent GOAWAY.
        case goneAway
        /// The socket closed.
        case closed
        /// No data arrived for too long, not even the response to a ping.
        case silent
        /// Several successive pushes had no response.
        case unanswering
        /// The peer does not speak HTTP/2.
        case notHTTP2
        /// The peer violated the rules of HTTP/2.
        case protocolViolated
        /// All stream numbers are used.
        case exhausted
        /// The pool requested the end of the connection.
        case retired
    }

    var kind: Kind
    var detail: String

    init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }
}
