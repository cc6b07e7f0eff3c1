import CarillonWire

/// The response to one poll.
struct PollAnswer: Sendable {
    /// The parameters that the server has.
    enum Parameters: Equatable, Sendable {
        /// The response has no parameters, as from servers of earlier versions.
        case unknown
        case none
        case revision(String)
    }

    var updates: [UpdateFrame] = []
    var parameters = Parameters.unknown
    var position: String?
    var more = false
    /// The time that the next poll must wait, because the server is busy.
    var retryAfter: Duration?
}

/// The changes that a stored response made.
struct Arrival: Equatable, Sendable {
    /// The number of new updates of each kind.
    var counts: [String: Int] = [:]
    var retracted: [UpdateKey] = []
    var isStored = false
}
