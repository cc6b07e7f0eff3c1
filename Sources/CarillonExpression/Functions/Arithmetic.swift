/// Computes `+ - * / %` of two values ("Numeric Values" in the language's definition). Both numbers must have the same type.
/// An overflow is an error.
func arithmetic(
    _ sign: Operator, _ one: ExpressionValue, _ other: ExpressionValue
) throws(Fault.Reason) -> ExpressionValue {
    switch (one, other) {
    case (.double(let one), .double(let other)):
        switch sign {
        case .add: return .double(one + other)
        case .subtract: return .double(one - other)
        case .multiply: return .double(one * other)
        case .divide: return .double(one / other)
        default: throw .noOverload
        }
    case (.int(let one), .int(let other)): return .int(try whole(sign, one, other))
    case (.uint(let one), .uint(let other)): return .uint(try whole(sign, one, other))
    default: return try otherArithmetic(sign, one, other)
    }
}

private func whole<Number: FixedWidthInteger>(
    _ sign: Operator, _ one: Number, _ other: Number
) throws(Fault.Reason) -> Number {
    let (result, overflow) =
        switch sign {
        case .add: one.addingReportingOverflow(other)
        case .subtract: one.subtractingReportingOverflow(other)
        case .multiply: one.multipliedReportingOverflow(by: other)
        case .divide: one.dividedReportingOverflow(by: other)
        case .modulo: one.remainderReportingOverflow(dividingBy: other)
        default: (0, false)
        }
    if overflow { throw other == 0 && (sign == .divide || sign == .modulo) ? .divisionByZero : .overflow }
    return result
}

private func otherArithmetic(
    _ sign: Operator, _ one: ExpressionValue, _ other: ExpressionValue
) throws(Fault.Reason) -> ExpressionValue {
    switch (sign, one, other) {
    case (.add, .string(let one), .string(let other)): return .string(one + other)
    case (.add, .bytes(let one), .bytes(let other)): return .bytes(one + other)
    case (.add, .list(let one), .list(let other)): return .list(one + other)
    case (.add, .duration(let one), .duration(let other)):
        return .duration(ExpressionDuration(nanoseconds: try whole(.add, one.nanoseconds, other.nanoseconds)))
    case (.subtract, .duration(let one), .duration(let other)):
        return .duration(ExpressionDuration(nanoseconds: try whole(.subtract, one.nanoseconds, other.nanoseconds)))
    case (.add, .timestamp(let instant), .duration(let span)), (.add, .duration(let span), .timestamp(let instant)):
        guard let sum = instant.adding(span) else { throw .overflow }
        return .timestamp(sum)
    case (.subtract, .timestamp(let instant), .duration(let span)):
        guard let difference = instant.adding(span, negated: true) else { throw .overflow }
        return .timestamp(difference)
    case (.subtract, .timestamp(let one), .timestamp(let other)):
        guard let difference = one.subtracting(other) else { throw .overflow }
        return .duration(difference)
    default: throw .noOverload
    }
}
