import CarillonExpression
import Foundation
import TestSupport
import Testing

/// The code of the library's pages, as it is printed there.
struct PageTests {
    @Test func `a condition is checked, bound and evaluated`() throws {
        let environment = ExpressionEnvironment([
            .init("price", .double), .init("previous", .double), .init("tags", .list(.string), maximumSize: 20),
        ])
        let condition = try ExpressionProgram("price > 100 && previous <= 100", in: environment)
        var bindings = ExpressionBindings(environment)
        bindings["price"] = .double(101)
        bindings["previous"] = .double(99.5)
        let holds = try condition.holds(bindings)
        #expect(holds)
    }

    @Test func `an environment has maps, extensions and the zones of its program`() throws {
        let environment = ExpressionEnvironment(
            [.init("price", .double), .init("item", .map(key: .string, value: .dynamic), maximumSize: 50)],
            extensions: [.crosses],
            zoneOffset: { name, instant in
                TimeZone(identifier: name)?.secondsFromGMT(for: Date(timeIntervalSince1970: Double(instant.seconds)))
            })
        let condition = try ExpressionProgram(
            "crosses(99.0, price, 100.0) && timestamp('2026-07-01T12:00:00Z').getHours('Europe/Berlin') == 14",
            in: environment)
        var bindings = ExpressionBindings(environment)
        bindings["price"] = .double(101)
        let holds = try condition.holds(bindings)
        #expect(holds)
    }

    @Test(arguments: [("CarillonExpression.md", 1), ("EmbeddingConditions.md", 1)])
    func `each block of a page is in this file`(page: String, count: Int) throws {
        let source = PageCode.plain(try String(contentsOfFile: #filePath, encoding: .utf8))
        let blocks = try PageCode.blocks(of: "Sources/CarillonExpression/CarillonExpression.docc/\(page)")
        #expect(blocks.count == count)
        for block in blocks {
            let isHere = source.contains(block)
            #expect(isHere, "\(page): \(block)")
        }
    }
}
