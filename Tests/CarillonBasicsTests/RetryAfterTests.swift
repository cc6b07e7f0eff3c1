import CarillonBasics
import Testing

struct RetryAfterTests {
    /// 6 November 1994, 08:49:37 UTC.
    private let now: Int64 = 784_111_777_000

    @Test(
        arguments: [
            ("0", 0), ("7", 7), (" 7\t", 7), ("007", 7), ("4.0", 4), ("4.2", 5), ("0.001", 1), ("86400", 86_400),
            ("86399.5", 86_400), ("86401", 86_400), ("99999999999999999999999999", 86_400),
        ] as [(String, Int64)])
    func `a number of seconds is rounded up and limited to a day`(_ value: String, _ seconds: Int64) {
        #expect(RetryAfter.duration(value, at: now) == .seconds(seconds))
    }

    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sunday, 06-Nov-94 08:50:37 GMT", 60), ("Sun Nov  6 08:50:37 1994", 60), ("Sun, 06 Nov 1994 08:49:36 GMT", 0),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Mon, 07 Nov 1994 08:49:37 GMT", 86_400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400), ("Tuesday, 06-Nov-40 08:50:37 GMT", 86_400),
            ("Sunday, 06-Nov-60 08:50:37 GMT", 0),
        ] as [(String, Int64)])
    func `a date is a wait from now, and zero in the past`(_ value: String, _ seconds: Int64) {
        #expect(RetryAfter.duration(value, at: now) == .seconds(seconds))
    }

    @Test func `a wait until a date is rounded up to whole seconds`() {
        #expect(RetryAfter.duration("Sun, 06 Nov 1994 08:49:40 GMT", at: now + 1) == .seconds(3))
        #expect(RetryAfter.duration("Sun, 06 Nov 1994 08:49:40 GMT", at: now + 1000) == .seconds(2))
    }

    @Test(arguments: [
        "", " ", "soon", "-1", "+1", "1e3", ".5", "5.", "1.2.3", "1 2", "0x10", "٣", "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:49 GMT", "Abc, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Xyz 1994 08:49:37 GMT",
    ])
    func `any other value is ignored`(_ value: String) {
        #expect(RetryAfter.duration(value, at: now) == nil)
    }
}
