import CarillonWire
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

struct Timestamp3339Tests {
    @Test(arguments: RandomSeed.some(1))
    func `each millisecond between 1970 and 2100 is written and read as the C library has it`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        for _ in 0..<100_000 {
            let milliseconds = Int64.random(in: 0..<4_102_444_800_000, using: &random)
            let text = Timestamp3339.text(milliseconds)
            guard text == written(milliseconds), Timestamp3339.milliseconds(text) == milliseconds, read(text) == milliseconds
            else {
                Issue.record("\(milliseconds) is written as \(text)")
                return
            }
        }
    }

    private func written(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ number: some BinaryInteger, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))T"
            + "\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))."
            + "\(padded(milliseconds % 1000, 3))Z"
    }

    private func read(_ text: String) -> Int64? {
        let numbers = text.split { !$0.isNumber }.compactMap { Int32($0) }
        guard numbers.count == 7 else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        return Int64(timegm(&parts)) * 1000 + Int64(numbers[6])
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (1_700_000_020_001, "2023-11-14T22:13:40.001Z"),
        ] as [(Int64, String)])
    func `moments at the edges of the calendar`(milliseconds: Int64, text: String) {
        #expect(Timestamp3339.text(milliseconds) == text)
        #expect(Timestamp3339.milliseconds(text) == milliseconds)
    }

    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.5Z", 500), ("1970-01-01T00:00:00.0019999Z", 1),
            ("1970-01-01T01:00:00.007+01:00", 7), ("1969-12-31T18:30:00.000-05:30", 0), ("1970-01-01t00:00:00.001z", 1),
        ] as [(String, Int64)])
    func `other texts of RFC 3339 are read`(text: String, milliseconds: Int64) {
        #expect(Timestamp3339.milliseconds(text) == milliseconds)
    }

    @Test(arguments: [
        "", "1970-01-01", "1970-01-01T00:00:00.000", "1970-01-01T00:00:00.Z", "1970-1-01T00:00:00.000Z",
        "1970-00-01T00:00:00.000Z", "1970-13-01T00:00:00.000Z", "1970-01-00T00:00:00.000Z", "1970-04-31T00:00:00.000Z",
        "1970-02-29T00:00:00.000Z", "2100-02-29T00:00:00.000Z", "1970-01-01T24:00:00.000Z", "1970-01-01T00:60:00.000Z",
        "1970-01-01T00:00:60.000Z", "1970-01-01T00:00:00.000+24:00", "1970-01-01T00:00:00.000+01:60",
        "1970-01-01T00:00:00.000+0100", "1970-01-01T00:00:00.000Zx", " 1970-01-01T00:00:00.000Z", "+970-01-01T00:00:00.000Z",
        "1970-01-01 00:00:00.000Z",
    ])
    func `a text that is no moment is refused`(text: String) {
        #expect(Timestamp3339.milliseconds(text) == nil)
    }

    @Test func `the first and the last millisecond that a number can have are written`() {
        #expect(Timestamp3339.text(.min).hasSuffix("Z") && Timestamp3339.text(.max).hasSuffix("Z"))
    }
}
