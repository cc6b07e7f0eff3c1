/// What the service says to a request.
struct SimulatorAnswer: Hashable, Sendable {
    var status: Int
    var reason: Reason?
    /// Since when a device token is not good, in milliseconds; with 410 only.
    var timestamp: Int64?
    var id: String?
    var uniqueID: String?
    var requestID: String?
    var channelID: String?
    /// What was asked for, in JSON.
    var document: String?

    var isAccepted: Bool { status < 300 }

    init(status: Int) { self.status = status }

    init(_ reason: Reason, timestamp: Int64? = nil) {
        status = reason.status
        self.reason = reason
        self.timestamp = timestamp
    }

    /// The body: empty for success, a reason for anything else.
    var body: String {
        if let document { return document }
        guard let reason else { return "" }
        guard let timestamp else { return "{\"reason\":\"\(reason.rawValue)\"}" }
        return "{\"reason\":\"\(reason.rawValue)\",\"timestamp\":\(timestamp)}"
    }
}
