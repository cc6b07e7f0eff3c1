import Testing

@testable import CarillonServer

struct DateHeaderTests {
    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (1_795_219_199, "Fri, 20 Nov 2026 23:59:59 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] as [(Int64, String)])
    func `a moment is written as HTTP wants it`(seconds: Int64, text: String) {
        #expect(DateHeader.text(seconds) == text)
    }
}
