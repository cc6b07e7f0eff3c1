import CarillonWire

/// The messages that wait in the store for the app, and the failures that the server has not heard of.
struct SessionMessages: Sendable {
    /// How many failures of messages are kept while there is no connection; the oldest gives way.
    static let reportsLimit = Limits.resultsPerRequest

    /// What waits in the store for the app, by channel.
    var buffers: [String: BufferUse]
    /// The position of the message that was stored last.
    var lastPosition: Int64
    /// Failures that the app reported while there was no connection.
    private(set) var reports: [MessageAnswer]

    init(restoring stored: StoredState) {
        buffers = stored.buffers
        lastPosition = stored.buffers.values.map(\.lastPosition).max() ?? 0
        reports = stored.reports
    }

    mutating func report(_ answer: MessageAnswer) {
        reports.append(answer)
        if reports.count > Self.reportsLimit { reports.removeFirst() }
    }

    mutating func takeReports() -> [MessageAnswer] {
        defer { reports = [] }
        return reports
    }
}
