import CarillonWire

/// What one poll brought.
struct PollAnswer: Sendable {
    /// The parameters that the server has.
    enum Parameters: Equatable, Sendable {
        /// It does not say, as servers of earlier versions.
        case unknown
        case none
        case revision(String)
    }

    var updates: [UpdateFrame] = []
    var parameters = Parameters.unknown
    var position: String?
    var more = false
    /// The server has much to do, and is to be left alone for so long.
    var retryAfter: Duration?
}

/// What changed when an answer was stored.
struct Arrival: Equatable, Sendable {
    /// By kind.
    var counts: [String: Int] = [:]
    var retracted: [UpdateKey] = []
    var isStored = false
}
