/// The second table: the APNs client in comparison with h2load.
struct SendingTable: Sendable {
    struct Row: Sendable {
        var name: String
        var carillon: Figure
        var h2load: Figure = .absent
        /// The target of the figure, in words.
        var aim = ""

        /// Whether the figure of Carillon could not be measured.
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
