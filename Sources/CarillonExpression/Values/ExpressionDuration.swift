/// A duration in whole nanoseconds, up to 292 years in both directions.
public struct ExpressionDuration: Sendable, Hashable {
    public let nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    static let perSecond: Int64 = 1_000_000_000

    private static let units: [(name: String, nanoseconds: Int64)] = [
        ("ns", 1), ("us", 1000), ("µs", 1000), ("μs", 1000), ("ms", 1_000_000), ("h", 3600 * perSecond),
        ("m", 60 * perSecond),
        ("s", perSecond),
    ]

    /// Parses `1h30m`, `-1.5s` or `0`: numbers with the units h, m, s, ms, us and ns, in any order. Fractions of a nanosecond
    /// are truncated. Returns nil for another text, and for a duration out of range.
    public init?(_ text: String) {
        var rest = Array(text.utf8)[...]
        var isNegative = false
        if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
            isNegative = sign == UInt8(ascii: "-")
            rest = rest.dropFirst()
        }
        if rest.elementsEqual("0".utf8) {
            nanoseconds = 0
            return
        }
        guard !rest.isEmpty else { return nil }
        // The type is wider than the result, because the smallest value has no positive counterpart.
        var total: UInt64 = 0
        while !rest.isEmpty {
            guard let part = Self.part(&rest) else { return nil }
            let (sum, overflow) = total.addingReportingOverflow(part)
            guard !overflow else { return nil }
            total = sum
        }
        guard total <= (isNegative ? UInt64(1) << 63 : UInt64(Int64.max)) else { return nil }
        nanoseconds = isNegative ? Int64(truncatingIfNeeded: 0 &- total) : Int64(total)
    }

    /// Parses a number and its unit.
    private static func part(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        let whole = digits(&rest)
        var fraction: ArraySlice<UInt8> = []
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            fraction = digits(&rest)
        }
        guard !whole.isEmpty || !fraction.isEmpty else { return nil }
        guard let unit = units.first(where: { rest.starts(with: $0.name.utf8) }) else { return nil }
        rest = rest.dropFirst(unit.name.utf8.count)
        var total: UInt64 = 0
        for digit in whole {
            let (tens, isMuch) = total.multipliedReportingOverflow(by: 10)
            let (sum, isMore) = tens.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
            guard !isMuch, !isMore else { return nil }
            total = sum
        }
        let (wholeUnits, overflow) = total.multipliedReportingOverflow(by: UInt64(unit.nanoseconds))
        guard !overflow else { return nil }
        // Eighteen digits are more than the nanoseconds of an hour need, and they fit into the integer.
        var scale: UInt64 = 1
        var parts: UInt64 = 0
        for digit in fraction.prefix(18) {
            parts = parts * 10 + UInt64(digit - UInt8(ascii: "0"))
            scale *= 10
        }
        let product = parts.multipliedFullWidth(by: UInt64(unit.nanoseconds))
        let (sum, isMore) = wholeUnits.addingReportingOverflow(scale.dividingFullWidth(product).quotient)
        return isMore ? nil : sum
    }

    private static func digits(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        rest = rest.dropFirst(digits.count)
        return digits
    }
}

extension ExpressionDuration: CustomStringConvertible {
    /// Seconds, with the digits of the fraction that are needed: `5400s`, `-1.5s`.
    public var description: String {
        let magnitude = nanoseconds.magnitude
        let (seconds, rest) = magnitude.quotientAndRemainder(dividingBy: UInt64(Self.perSecond))
        return (nanoseconds < 0 ? "-" : "") + "\(seconds)" + fractionText(Int(rest)) + "s"
    }
}

/// Returns `.5` for 500,000,000 nanoseconds, and an empty text for 0.
func fractionText(_ nanoseconds: Int) -> String {
    guard nanoseconds != 0 else { return "" }
    var digits = Array(String(1_000_000_000 + nanoseconds).utf8.dropFirst())
    while digits.last == UInt8(ascii: "0") { digits.removeLast() }
    return "." + String(decoding: digits, as: UTF8.self)
}
