/// One line that shows the progress of a command, shortened to the width of the terminal.
struct ProgressLine: Equatable {
    var accepted: Int
    var rejected: Int
    var failed: Int
    /// The progress from 0 to 1; nil if the total is not known.
    var fraction: Double?
    var perSecond: Int

    func text(width: Int) -> String {
        var counts = "accepted \(accepted.grouped)"
        if rejected > 0 { counts += "  refused \(rejected.grouped)" }
        if failed > 0 { counts += "  failed \(failed.grouped)" }
        let rate = "\(perSecond.grouped)/s"
        guard let fraction else {
            return String("\((accepted + rejected + failed).grouped) sent  \(rate)  \(counts)".prefix(max(0, width)))
        }
        let done = min(1, max(0, fraction))
        let percent = "\(Int(done * 100)) %".padding(to: 5, atStart: true)
        let words = "\(percent)  \(rate)  \(counts)"
        let room = min(30, width - words.count - 3)
        guard room >= 5 else { return String(words.prefix(max(0, width))) }
        let filled = Int(done * Double(room))
        return "[\(String(repeating: "#", count: filled))\(String(repeating: "-", count: room - filled))] \(words)"
    }
}
