/// Reads a JSON number whose value is an integer, in any notation (RFC 8259 section 6): `301`, `301.0`, `3.01e2`.
package enum WholeNumber {
    /// Returns the value; nil if it has a fraction or does not fit the type. The arithmetic is exact.
    ///
    /// - Parameter text: A number in the grammar of JSON. The order of its parts is not checked.
    package static func value<Number: FixedWidthInteger>(
        of text: some Sequence<UInt8>, as type: Number.Type = Number.self
    ) -> Number? {
        var number: Number = 0
        // The number of trailing zeros. The number is multiplied by them only when another digit or the exponent requires it.
        var zeros = 0
        // The number of digits after the point.
        var places = 0
        var exponent = 0
        var (isNegative, isFraction, isExponent, isExponentNegative) = (false, false, false, false)
        for byte in text {
            switch byte {
            case UInt8(ascii: "-") where isExponent: isExponentNegative = true
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "+"): break
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"): isExponent = true
            case UInt8(ascii: "0")...UInt8(ascii: "9") where isExponent:
                if exponent < mostExponent { exponent = 10 * exponent + Int(byte - UInt8(ascii: "0")) }
            case UInt8(ascii: "0"):
                if isFraction { places += 1 }
                if number != 0 { zeros += 1 }
            case UInt8(ascii: "1")...UInt8(ascii: "9"):
                if isFraction { places += 1 }
                guard let room = shifted(number, by: zeros + 1) else { return nil }
                let digit = Number(truncatingIfNeeded: byte - UInt8(ascii: "0"))
                let (sum, isTooLarge) =
                    isNegative ? room.subtractingReportingOverflow(digit) : room.addingReportingOverflow(digit)
                if isTooLarge { return nil }
                number = sum
                zeros = 0
            default:
                return nil
            }
        }
        if number == 0 { return 0 }
        let shift = zeros - places + (isExponentNegative ? -exponent : exponent)
        return shift < 0 ? nil : shifted(number, by: shift)
    }

    /// Larger than the length of any text, so every larger exponent has the same result.
    private static let mostExponent = 1 << 40

    /// Multiplies the number by ten to the power of `places`; returns nil when the product does not fit.
    private static func shifted<Number: FixedWidthInteger>(_ number: Number, by places: Int) -> Number? {
        if number == 0 { return 0 }
        var number = number
        for _ in 0..<places {
            let (product, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            if isTooLarge { return nil }
            number = product
        }
        return number
    }
}
