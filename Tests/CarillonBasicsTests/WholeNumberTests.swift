import CarillonBasics
import Testing

/// Numbers of JSON whose value is an integer, in any notation (RFC 8259 section 6).
struct WholeNumberTests {
    /// Ways to write a number of decimal digits.
    private static func forms(of digits: String, sign: String) -> [String] {
        var forms = ["", ".0", ".000", "e0", "E+0", "e-00", ".0e0", ".00e-0"].map { digits + $0 }
        forms += ["0.\(digits)e\(digits.count)", "0.000\(digits)e+\(digits.count + 3)"]
        // No number of JSON begins with two zeros.
        if digits != "0" { forms.append("\(digits)000e-3") }
        for place in digits.indices.dropFirst() {
            forms.append("\(digits[..<place]).\(digits[place...])E\(digits[place...].count)")
            forms.append("\(digits[..<place]).\(digits[place...])0e+0\(digits[place...].count)")
        }
        return forms.map { sign + $0 }
    }

    @Test(arguments: [
        0, 1, -1, 7, 10, -10, 301, -301, 1000, 9_007_199_254_740_993, -9_007_199_254_740_993, 1_000_000_000_000_000_000,
        Int.max, Int.max - 1, Int.min, Int.min + 1,
    ])
    func `every form of an integer is that integer`(number: Int) {
        for form in Self.forms(of: String(number.magnitude), sign: number < 0 ? "-" : "") {
            #expect(WholeNumber.value(of: form.utf8, as: Int.self) == number, "\(form)")
            #expect(JSONValue(parsing: Array(form.utf8)) == .integer(number), "\(form)")
        }
    }

    @Test(arguments: [
        "-0", "-0.0", "0.000", "-0e5", "0e99999999999999999999", "-0.0E-99999999999999999999", "0e-1",
    ])
    func `every zero is the integer 0`(text: String) {
        #expect(JSONValue(parsing: Array(text.utf8)) == .integer(0))
        #expect(WholeNumber.value(of: text.utf8, as: UInt64.self) == 0)
    }

    @Test(arguments: [("0.5", 0.5), ("-0.5", -0.5), ("301.5", 301.5), ("1e-1", 0.1), ("10e-2", 0.1)])
    func `a number with a fraction is no integer`(text: String, number: Double) {
        #expect(WholeNumber.value(of: text.utf8, as: Int.self) == nil)
        #expect(JSONValue(parsing: Array(text.utf8)) == .number(number))
    }

    @Test(arguments: [
        ("1.00000000000000000001", 1.0), ("301.00000000000000001", 301), ("9007199254740993.5", 9_007_199_254_740_994),
        ("1e-99999999999999999999", 0), ("1e-400", 0), ("-1e-400", 0),
    ])
    func `a fraction that a double cannot represent is detected`(text: String, number: Double) {
        #expect(WholeNumber.value(of: text.utf8, as: Int.self) == nil)
        #expect(JSONValue(parsing: Array(text.utf8)) == .number(number))
    }

    @Test(arguments: [
        "9223372036854775808", "-9223372036854775809", "9223372036854775808.0", "1e19", "-1e19", "92233720368547758070e0",
        "1e99999999999999999999",
    ])
    func `an integer that does not fit is none`(text: String) {
        #expect(WholeNumber.value(of: text.utf8, as: Int.self) == nil)
        let value = JSONValue(parsing: Array(text.utf8))
        if case .integer? = value { Issue.record("\(text) is read as an integer") }
        // It is written as a number that is read as the same.
        if let value { #expect(JSONValue(parsing: value.bytes) == value) }
    }

    @Test func `each type has its own bounds`() {
        #expect(WholeNumber.value(of: "18446744073709551615.0".utf8, as: UInt64.self) == .max)
        #expect(WholeNumber.value(of: "1.8446744073709551615e19".utf8, as: UInt64.self) == .max)
        #expect(WholeNumber.value(of: "18446744073709551616".utf8, as: UInt64.self) == nil)
        #expect(WholeNumber.value(of: "-1".utf8, as: UInt64.self) == nil)
        #expect(WholeNumber.value(of: "1.27e2".utf8, as: Int8.self) == 127)
        #expect(WholeNumber.value(of: "128".utf8, as: Int8.self) == nil)
        #expect(WholeNumber.value(of: "-12.8e1".utf8, as: Int8.self) == -128)
    }

    @Test func `a text with other characters than digits is not a number`() {
        for text in ["x", "1x", "1e5x", "0x10", "é"] {
            #expect(WholeNumber.value(of: text.utf8, as: Int.self) == nil, "\(text)")
        }
    }
}
