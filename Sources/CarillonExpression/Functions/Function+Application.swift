extension Function {
    /// Returns the units of a call, without its arguments.
    func cost(_ one: ExpressionValue, _ two: ExpressionValue) -> Int {
        switch self {
        case .contains: 1 + ((one.extent + 9) / 10) * ((two.extent + 9) / 10)
        case .startsWith, .endsWith: 1 + two.extent / 10
        // The call itself counts its cost.
        case .matches: 1
        case .size, .bool, .int, .uint, .double, .string, .bytes, .timestamp, .duration, .version: 1 + textExtent(one) / 10
        case .within: 5
        // The second argument is a time zone.
        default: 1 + textExtent(two) / 10
        }
    }

    private func textExtent(_ value: ExpressionValue) -> Int {
        switch value {
        case .string, .bytes: value.extent
        default: 0
        }
    }

    func apply(
        _ one: ExpressionValue, _ two: ExpressionValue, _ three: ExpressionValue, _ four: ExpressionValue, count: Int,
        _ environment: borrowing ExpressionEnvironment
    ) throws(Fault.Reason) -> ExpressionValue {
        switch self {
        case .size: return try size(one)
        case .contains: return try texts(one, two) { $0.contains(bytesOf: $1) }
        case .startsWith: return try texts(one, two) { $0.utf8.starts(with: $1.utf8) }
        case .endsWith: return try texts(one, two) { $0.utf8.reversed().starts(with: $1.utf8.reversed()) }
        // The evaluation calls `matches` itself, because it counts the cost.
        case .matches: throw .noOverload
        case .type: return .type(one.type)
        case .dyn: return one
        case .bool, .int, .uint, .double, .string, .bytes, .timestamp, .duration: return try converted(one)
        case .getFullYear, .getMonth, .getDate, .getDayOfMonth, .getDayOfWeek, .getDayOfYear, .getHours, .getMinutes,
            .getSeconds,
            .getMilliseconds:
            return .int(try part(of: one, zone: count > 1 ? two : nil, environment))
        case .crosses, .percentChange, .within, .version: return try extended(one, two, three, four)
        }
    }

    private func size(_ value: ExpressionValue) throws(Fault.Reason) -> ExpressionValue {
        switch value {
        case .string(let text): .int(Int64(text.unicodeScalars.count))
        case .bytes, .list, .map: .int(Int64(value.extent))
        default: throw .noOverload
        }
    }

    private func texts(
        _ one: ExpressionValue, _ two: ExpressionValue, _ holds: (String, String) -> Bool
    ) throws(Fault.Reason) -> ExpressionValue {
        guard case .string(let one) = one, case .string(let two) = two else { throw .noOverload }
        return .bool(holds(one, two))
    }
}
