/// The printed report: the table of the server, and the table of the APNs client.
struct Table: Sendable {
    var machine: [String]
    var rows: [Row] = []
    var notes: [String] = []
    var sending = SendingTable()

    /// Whether a figure of Carillon is missing.
    var isIncomplete: Bool {
        rows.contains { $0.isMissing } || sending.rows.contains { $0.isMissing }
    }

    var markdown: String {
        var lines = machine.map { "- \($0)" }
        if !rows.isEmpty {
            lines += ["", "| Figure | Carillon | Nchan | Carillon / Nchan |", "|---|---|---|---|"]
            lines += rows.map(\.markdown)
        }
        if !notes.isEmpty { lines += [""] + notes.map { "- \($0)" } }
        if !sending.rows.isEmpty { lines += [""] + sending.lines }
        return lines.joined(separator: "\n") + "\n"
    }
}
