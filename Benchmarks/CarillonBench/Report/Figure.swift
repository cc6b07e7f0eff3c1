import Foundation

/// One figure of one server: the results of the runs, whose median is used, or the reason why there is none.
enum Figure: Sendable {
    case runs([Double])
    case notMeasured(String)
    /// The server does not have the measured feature.
    case absent

    var median: Double? {
        guard case .runs(let runs) = self, !runs.isEmpty else { return nil }
        let sorted = runs.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    /// The median, with the least and the greatest in parentheses.
    var text: String {
        switch self {
        case .runs(let runs):
            guard let median, let least = runs.min(), let greatest = runs.max() else { return "–" }
            return runs.count == 1
                ? Self.text(median) : "\(Self.text(median)) (\(Self.text(least))–\(Self.text(greatest)))"
        case .notMeasured(let reason): return "not measured: \(reason)".replacing("|", with: "/")
        case .absent: return "–"
        }
    }

    /// Returns the ratio to the figure of another server.
    func ratio(to other: Figure) -> String {
        guard let own = median, let others = other.median, others > 0 else { return "–" }
        return Self.text(own / others)
    }

    /// Returns a number with three significant digits, and with groups of thousands.
    static func text(_ number: Double) -> String {
        switch abs(number) {
        case 1000...:
            var digits = String(Int(number.rounded()))
            var groups: [String] = []
            while digits.count > 3 {
                groups.insert(String(digits.suffix(3)), at: 0)
                digits = String(digits.dropLast(3))
            }
            return ([digits] + groups).joined(separator: ",")
        case 100...: return String(format: "%.0f", number)
        case 10...: return String(format: "%.1f", number)
        case 1...: return String(format: "%.2f", number)
        default: return String(format: "%.3f", number)
        }
    }
}
