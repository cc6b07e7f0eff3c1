extension Function {
    /// Returns a part of an instant in a zone, or of a duration, as `getHours()` does ("Abstract Types" in the language's
    /// definition).
    func part(
        of value: ExpressionValue, zone: ExpressionValue?, _ environment: borrowing ExpressionEnvironment
    ) throws(Fault.Reason) -> Int64 {
        switch value {
        case .duration(let span):
            guard zone == nil else { throw .noOverload }
            return try part(of: span)
        case .timestamp(let instant):
            var offset = 0
            if let zone {
                guard case .string(let name) = zone else { throw .noOverload }
                guard let found = Self.offset(of: name, at: instant, environment) else { throw .badZone }
                offset = found
            }
            return Int64(try part(of: CivilTime(instant, offsetSeconds: offset), nanoseconds: Int(instant.nanoseconds)))
        default: throw .noOverload
        }
    }

    private func part(of span: ExpressionDuration) throws(Fault.Reason) -> Int64 {
        switch self {
        case .getHours: span.nanoseconds / (3600 * ExpressionDuration.perSecond)
        case .getMinutes: span.nanoseconds / (60 * ExpressionDuration.perSecond)
        case .getSeconds: span.nanoseconds / ExpressionDuration.perSecond
        case .getMilliseconds: span.nanoseconds % ExpressionDuration.perSecond / 1_000_000
        default: throw .noOverload
        }
    }

    private func part(of time: CivilTime, nanoseconds: Int) throws(Fault.Reason) -> Int {
        switch self {
        case .getFullYear: time.year
        case .getMonth: time.month - 1
        case .getDate: time.day
        case .getDayOfMonth: time.day - 1
        case .getDayOfWeek: time.dayOfWeek
        case .getDayOfYear: time.dayOfYear
        case .getHours: time.hour
        case .getMinutes: time.minute
        case .getSeconds: time.second
        case .getMilliseconds: nanoseconds / 1_000_000
        default: throw .noOverload
        }
    }

    /// Returns the offset of a zone in seconds east of UTC; nil for an unknown zone.
    private static func offset(
        of zone: String, at instant: ExpressionTimestamp, _ environment: borrowing ExpressionEnvironment
    ) -> Int? {
        if zone.isEmpty || zone == "UTC" { return 0 }
        guard zone.utf8.count <= longestZone else { return nil }
        return fixedOffset(zone) ?? environment.zoneOffset(zone, instant)
    }

    /// The longest accepted name of a zone. No zone of the tz database has a longer name.
    private static let longestZone = 64

    /// Reads an offset such as `-03:30`, `+03:30` or `03:30`.
    private static func fixedOffset(_ zone: String) -> Int? {
        var bytes = Array(zone.utf8)[...]
        let isWest = bytes.first == UInt8(ascii: "-")
        if isWest || bytes.first == UInt8(ascii: "+") { bytes.removeFirst() }
        let numbers = bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard numbers.count == 2, numbers[0].count == 2, numbers[1].count == 2,
            numbers.joined().allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
            let hours = Int(String(decoding: numbers[0], as: UTF8.self)), hours < 24,
            let minutes = Int(String(decoding: numbers[1], as: UTF8.self)), minutes < 60
        else { return nil }
        return (hours * 3600 + minutes * 60) * (isWest ? -1 : 1)
    }
}
