/// The response of the simulated service to a request.
struct SimulatorAnswer: Hashable, Sendable {
    var status: Int
    var reason: Reason?
    /// The time since which a device token is not valid, in milliseconds since 1970; only with 410.
    var timestamp: Int64?
    var id: String?
    var uniqueID: String?
    var requestID: String?
    var channelID: String?
    /// The requested data in JSON.
    var document: String?

    var isAccepted: Bool { status < 300 }

    init(status: Int) { self.status = status }

    init(_ reason: Reason, timestamp: Int64? = nil) {
        status = reason.status
        self.reason = reason
        self.timestamp = timestamp
    }

    /// The body: empty or the requested data for an accepted request, otherwise the reason.
    var body: String {
        if let document { return document }
        guard let reason else { return "" }
        guard let timestamp else { return "{\"reason\":\"\(reason.rawValue)\"}" }
        return "{\"reason\":\"\(reason.rawValue)\",\"timestamp\":\(timestamp)}"
    }
}
