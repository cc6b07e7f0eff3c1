extension Function {
    /// Converts a value, as `int(x)` does ("Type Conversions" in the language's definition).
    func converted(_ value: ExpressionValue) throws(Fault.Reason) -> ExpressionValue {
        switch (self, value) {
        case (.bool, .bool), (.int, .int), (.uint, .uint), (.double, .double), (.string, .string), (.bytes, .bytes),
            (.timestamp, .timestamp), (.duration, .duration):
            return value
        case (.bool, .string(let text)):
            if ["1", "t", "T", "true", "TRUE", "True"].contains(where: text.hasSameBytes) { return .bool(true) }
            if ["0", "f", "F", "false", "FALSE", "False"].contains(where: text.hasSameBytes) { return .bool(false) }
            throw .badText
        case (.int, _): return .int(try int(value))
        case (.uint, _): return .uint(try uint(value))
        case (.double, _): return .double(try double(value))
        case (.string, _): return .string(try text(value))
        case (.bytes, .string(let text)): return .bytes(Array(text.utf8))
        case (.timestamp, .string(let text)):
            guard let timestamp = ExpressionTimestamp(text) else { throw .badText }
            return .timestamp(timestamp)
        case (.timestamp, .int(let seconds)):
            guard let timestamp = ExpressionTimestamp(seconds: seconds) else { throw .overflow }
            return .timestamp(timestamp)
        case (.duration, .string(let text)):
            guard let duration = ExpressionDuration(text) else { throw .badText }
            return .duration(duration)
        default: throw .noOverload
        }
    }

    private func int(_ value: ExpressionValue) throws(Fault.Reason) -> Int64 {
        switch value {
        case .uint(let number):
            guard let number = Int64(exactly: number) else { throw .overflow }
            return number
        case .double(let number):
            // The smallest integer is excluded, as in the known implementations.
            guard number > -0x1p63, number < 0x1p63 else { throw .overflow }
            return Int64(number)
        case .string(let text):
            let digits = text.first == "-" || text.first == "+" ? text.dropFirst() : text[...]
            guard isDecimal(digits), let number = Int64(text) else { throw .badText }
            return number
        case .timestamp(let instant): return instant.seconds
        case .duration(let span): return span.nanoseconds
        default: throw .noOverload
        }
    }

    private func uint(_ value: ExpressionValue) throws(Fault.Reason) -> UInt64 {
        switch value {
        case .int(let number):
            guard let number = UInt64(exactly: number) else { throw .overflow }
            return number
        case .double(let number):
            guard number >= 0, number < 0x1p64 else { throw .overflow }
            return UInt64(number)
        case .string(let text):
            guard isDecimal(text[...]), let number = UInt64(text) else { throw .badText }
            return number
        default: throw .noOverload
        }
    }

    private func double(_ value: ExpressionValue) throws(Fault.Reason) -> Double {
        switch value {
        case .int(let number): return Double(number)
        case .uint(let number): return Double(number)
        case .string(let text):
            guard let number = DoubleText.read(text) else { throw .badText }
            return number
        default: throw .noOverload
        }
    }

    private func text(_ value: ExpressionValue) throws(Fault.Reason) -> String {
        switch value {
        case .bool(let value): return value ? "true" : "false"
        case .int(let number): return String(number)
        case .uint(let number): return String(number)
        case .double(let number): return DoubleText.write(number)
        case .timestamp(let instant): return instant.description
        case .duration(let span): return span.description
        case .bytes(let bytes):
            guard let text = String(validating: bytes, as: UTF8.self) else { throw .badText }
            return text
        default: throw .noOverload
        }
    }

    private func isDecimal(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
    }
}

/// Doubles as text, which the definition does not specify. The text has the fewest digits from which the same number is read,
/// and an exponent below 1e-4 and from 1e+06 on, as in the first implementation.
enum DoubleText {
    static func write(_ number: Double) -> String {
        guard !number.isNaN else { return "NaN" }
        guard number.isFinite else { return number < 0 ? "-Inf" : "+Inf" }
        let sign = number.sign == .minus ? "-" : ""
        guard number != 0 else { return sign + "0" }
        let (digits, power) = shortest(number.magnitude)
        if power < -4 || power >= 6 {
            let mantissa = digits.count == 1 ? digits : "\(digits.prefix(1)).\(digits.dropFirst())"
            let exponent = String(power.magnitude)
            return sign + mantissa + (power < 0 ? "e-" : "e+") + (exponent.count == 1 ? "0" : "") + exponent
        }
        if power < 0 { return sign + "0." + String(repeating: "0", count: -power - 1) + digits }
        guard digits.count > power + 1 else {
            return sign + digits + String(repeating: "0", count: power + 1 - digits.count)
        }
        return sign + digits.prefix(power + 1) + "." + digits.dropFirst(power + 1)
    }

    /// Returns the digits without a point, and the power of ten of the first digit.
    private static func shortest(_ number: Double) -> (digits: String, power: Int) {
        // `description` is the shortest text from which the same number is read, in one of two forms.
        let parts = number.description.split(separator: "e")
        let mantissa = parts[0].split(separator: ".", omittingEmptySubsequences: false)
        var power = (parts.count > 1 ? Int(parts[1]) ?? 0 : 0) + mantissa[0].count - 1
        var digits = mantissa.joined()[...]
        while digits.count > 1, digits.first == "0" {
            digits.removeFirst()
            power -= 1
        }
        while digits.count > 1, digits.last == "0" { digits.removeLast() }
        return (String(digits), power)
    }

    /// Reads decimal text with an optional sign, fraction and exponent, or `inf`, `infinity` or `nan` in upper or lower case.
    /// Returns nil for another text, and for a number out of range.
    static func read(_ text: String) -> Double? {
        let bytes = Array(text.utf8)
        let isSigned = bytes.first == UInt8(ascii: "-") || bytes.first == UInt8(ascii: "+")
        let unsigned = String(decoding: bytes.dropFirst(isSigned ? 1 : 0), as: UTF8.self)
        let isNegative = bytes.first == UInt8(ascii: "-")
        switch unsigned.lowercased() {
        case "inf", "infinity": return isNegative ? -.infinity : .infinity
        case "nan": return isSigned ? nil : .nan
        default:
            guard unsigned.utf8.allSatisfy({ (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }),
                unsigned.utf8.first.map({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }) == true,
                unsigned.utf8.contains(where: { (0x30...0x39).contains($0) }),
                let number = Double(unsigned.first == "." ? "0" + unsigned : unsigned), number.isFinite
            else { return nil }
            return isNegative ? -number : number
        }
    }
}
