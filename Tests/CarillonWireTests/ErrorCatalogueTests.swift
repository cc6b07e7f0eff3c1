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
}
