/// Why a figure could not be measured. The table contains this text instead of the figure.
struct NotMeasured: Error, CustomStringConvertible {
    var reason: String

    init(_ reason: String) { self.reason = reason }

    var description: String { reason }
}
