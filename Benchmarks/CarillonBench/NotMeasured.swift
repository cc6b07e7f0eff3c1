/// Why a figure could not be measured; it stands in the table in the figure's place.
struct NotMeasured: Error, CustomStringConvertible {
    var reason: String

    init(_ reason: String) { self.reason = reason }

    var description: String { reason }
}
