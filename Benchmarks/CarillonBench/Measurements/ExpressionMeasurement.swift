import CarillonExpression

/// Measures the time that a condition needs on one core: to be accepted, and to be evaluated.
struct ExpressionMeasurement: Sendable {
    let scale: Scale

    struct Result: Sendable {
        var name: String
        var nanoseconds: Double
    }

    private static let conditions = [
        "price > 100.0", "previous <= 100.0 && price > 100.0", "symbol == 'ACME' && price > 100.0",
        "symbol in ['A', 'B', 'ACME'] || volume > 10000", "item.price > 100.0", "symbol.matches('^AC[A-Z]+$')",
    ]

    func measure() throws -> [Result] {
        let environment = ExpressionEnvironment([
            .init("price", .double), .init("previous", .double), .init("symbol", .string, maximumSize: 20),
            .init("volume", .int), .init("item", .map(key: .string, value: .dynamic), maximumSize: 20),
        ])
        var bindings = ExpressionBindings(environment)
        bindings["price"] = .double(101)
        bindings["previous"] = .double(99)
        bindings["symbol"] = .string("ACME")
        bindings["volume"] = .int(5000)
        var item = ExpressionMap()
        guard item.insert(.double(101), for: .string("price")) else { throw NotMeasured("the map took no entry") }
        bindings["item"] = .map(item)
        var results: [Result] = []
        for source in Self.conditions {
            let program = try ExpressionProgram(source, in: environment)
            var held = 0
            let start = nanoseconds()
            for _ in 0..<scale.evaluations where try program.holds(bindings) { held += 1 }
            let spent = Double(nanoseconds() - start)
            guard held == scale.evaluations else { throw NotMeasured("\(source) did not hold") }
            results.append(Result(name: "`\(source)`, ns", nanoseconds: spent / Double(held)))
        }
        let count = scale.evaluations / 100
        var constants = 0
        let start = nanoseconds()
        for number in 0..<count {
            constants += try ExpressionProgram(
                "price > \(number).5 && symbol in ['A', 'B'] || volume > 10 + \(number)", in: environment
            ).constants.count
        }
        let spent = Double(nanoseconds() - start)
        guard constants == 4 * count else { throw NotMeasured("conditions had \(constants) constants") }
        results.append(Result(name: "to read and check one with three comparisons, ns", nanoseconds: spent / Double(count)))
        return results
    }
}
