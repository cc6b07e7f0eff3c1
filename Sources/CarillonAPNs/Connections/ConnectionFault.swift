/// Why a connection takes no more pushes, or ended.
struct ConnectionFault: Error, Equatable, Sendable {
    enum Kind: Equatable, Sendable {
        /// The service asked to leave: GOAWAY.
        case goneAway
        /// The socket closed.
        case closed
        /// Nothing came for too long, not even the answer to a ping.
        case silent
        /// Several pushes in a row were not answered.
        case unanswering
        /// The peer does not speak HTTP/2.
        case notHTTP2
        /// The peer speaks HTTP/2 wrongly.
        case protocolViolated
        /// All stream numbers are used.
        case exhausted
        /// We asked for it.
        case retired
    }

    var kind: Kind
    var detail: String

    init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }
}
