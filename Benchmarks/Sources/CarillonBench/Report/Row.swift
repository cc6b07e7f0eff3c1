/// The rows of the table, by the names that `--only` knows.
enum RowGroup: String, CaseIterable, Sendable {
    case memory, connects, latency, offline, live, cpu
    case catchUp = "catch-up"
    case restart
}

/// One line of the table.
struct Row: Sendable {
    var group: RowGroup
    var name: String
    var carillon: Figure
    var nchan: Figure

    /// Whether Carillon's own figure could not be measured.
    var isMissing: Bool {
        if case .notMeasured = carillon { return true }
        return false
    }

    var markdown: String {
        var ratio = "–"
        if let ours = carillon.median, let theirs = nchan.median, theirs > 0 {
            ratio = Figure.text(ours / theirs)
        }
        return "| \(name) | \(carillon.text) | \(nchan.text) | \(ratio) |"
    }
}
