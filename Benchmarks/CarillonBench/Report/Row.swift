/// The groups of rows, by the names for `--only`.
enum RowGroup: String, CaseIterable, Sendable {
    case memory, registration, registry, connects, latency, offline, crowd, live, cpu
    case catchUp = "catch-up"
    case restart
    case wakes
    case expressions
    case items
    case updates
    case attachments
    case services
    case apns
}

/// One line of the table.
struct Row: Sendable {
    var group: RowGroup
    var name: String
    var carillon: Figure
    var nchan: Figure

    /// Whether the figure of Carillon could not be measured.
    var isMissing: Bool {
        if case .notMeasured = carillon { return true }
        return false
    }

    var markdown: String {
        "| \(name) | \(carillon.text) | \(nchan.text) | \(carillon.ratio(to: nchan)) |"
    }
}
