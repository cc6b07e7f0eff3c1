/// The table as it is printed.
struct Table: Sendable {
    var machine: [String]
    var rows: [Row] = []
    var notes: [String] = []

    var markdown: String {
        var lines = machine.map { "- \($0)" }
        lines += ["", "| Figure | Carillon | Nchan | Carillon / Nchan |", "|---|---|---|---|"]
        lines += rows.map(\.markdown)
        if !notes.isEmpty {
            lines.append("")
            lines += notes.map { "- \($0)" }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
