import CarillonWire
import Foundation
import Testing

/// The page of the errors is the catalogue, row by row.
struct ErrorCatalogueTests {
    private static var page: String {
        get throws {
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            return try String(contentsOf: root.appendingPathComponent("docs/errors.md"), encoding: .utf8)
        }
    }

    @Test func `each error is on the page as it is answered, once, and no other is`() throws {
        let rows = try Self.page.split(separator: "\n").filter { $0.hasPrefix("| `") }.map(String.init)
        let wanted = ErrorCode.allCases.map { code in
            "| `\(code.rawValue)` | \(code.status) | \(code.title) | \(code.isRetryable ? "yes" : "") |"
        }
        #expect(Set(rows) == Set(wanted))
        #expect(rows.count == wanted.count)
    }

    @Test(arguments: ErrorCode.allCases)
    func `a channel is refused with 500 where another attempt may succeed, and with 400 elsewhere`(code: ErrorCode) {
        let maySucceed = code.isRetryable || [.channelsTooMany, .devicesTooMany].contains(code)
        #expect(code.registrationStatus == (maySucceed ? 500 : 400))
    }

    @Test func `only a Carillon client receives the code of a refused channel`() {
        let refusal = Refusal(.rateLimited, "detail", retryAfterSeconds: 3)
        let plain = ServerFrame.registrationRefused(channelID: "c", refusal, isCarillon: false)
        #expect(
            String(decoding: plain.text, as: UTF8.self) == #"{"messageType":"register","channelID":"c","status":500}"#)
        let carillon = ServerFrame.registrationRefused(channelID: "c", refusal, isCarillon: true)
        let text = #"{"messageType":"register","channelID":"c","status":500,"code":"rate_limited","retryAfter":3}"#
        #expect(String(decoding: carillon.text, as: UTF8.self) == text)
    }
}
