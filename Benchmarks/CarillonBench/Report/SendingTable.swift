/// The second table: the APNs client beside h2load.
struct SendingTable: Sendable {
    struct Row: Sendable {
        var name: String
        var carillon: Figure
        var h2load: Figure = .absent
        /// What the figure is to reach, in words.
        var aim = ""

        /// Whether Carillon's own figure could not be measured.
        var isMissing: Bool {
            if case .notMeasured = carillon { return true }
            return false
        }

        var markdown: String {
            "| \(name) | \(carillon.text) | \(h2load.text) | \(carillon.ratio(to: h2load)) |\(aim.isEmpty ? "" : " \(aim)") |"
        }
    }

    var rows: [Row] = []
    var notes: [String] = []

    var lines: [String] {
        var lines = ["## Sending to Apple", "", "| Figure | Carillon | h2load | Carillon / h2load | Aim |"]
        lines.append("|---|---|---|---|---|")
        lines += rows.map(\.markdown)
        if !notes.isEmpty { lines += [""] + notes.map { "- \($0)" } }
        return lines
    }
}
