import CarillonExpression
import Testing

struct ProgramTests {
    @Test func `conditions that differ in constants only have one shape`() throws {
        let environment = ExpressionEnvironment([.init("price", .double), .init("symbol", .string)])
        let one = try ExpressionProgram("price > 100.0 && symbol in ['A', 'B']", in: environment)
        let other = try ExpressionProgram("price>2.5&&(symbol in [\"C\"])", in: environment)
        #expect(one.shape.key == other.shape.key)
        #expect(one.constants.map(\.literalText) == ["100.0", #"["A", "B"]"#])
        var bindings = ExpressionBindings(environment)
        bindings["price"] = .double(50)
        bindings["symbol"] = .string("C")
        #expect(try !one.holds(bindings))
        #expect(try one.shape.holds(bindings, constants: other.constants))
        #expect(try other.holds(bindings))
        let different = [
            "price > 1", "price >= 100.0 && symbol in ['A']", "price > 100.0 && symbol == 'A'",
            "price > 100.0 || symbol in ['A']",
        ]
        for source in different { #expect(try ExpressionProgram(source, in: environment).shape.key != one.shape.key) }
        let patterns = try ["a+", "b+"].map { try ExpressionProgram("symbol.matches('\($0)')", in: environment).shape.key }
        #expect(patterns[0] != patterns[1])
        let rooted = try ["a+", "b+"].map { try ExpressionProgram(".matches(symbol, '\($0)')", in: environment).shape.key }
        #expect(rooted[0] != rooted[1])
    }

    @Test func `of declared names the longest counts, within the container first`() throws {
        let environment = ExpressionEnvironment(
            [
                .init("p", .map(key: .string, value: .dynamic)), .init("p.q", .map(key: .string, value: .int)),
                .init("a.b.p", .string), .init("a.p", .bool),
            ], container: "a.b")
        var bindings = ExpressionBindings(environment)
        bindings["p"] = .map(["q": .map(["r": .int(1)])])
        bindings["p.q"] = .map(["r": .int(2)])
        bindings["a.b.p"] = .string("inner")
        func value(_ source: String) throws -> String {
            let program = try ExpressionProgram(source, in: environment)
            return "\(program.type) \(try program.value(bindings).literalText)"
        }
        #expect(try value("p.q.r") == "int 2")
        #expect(try value("p") == "string \"inner\"")
        #expect(try value(".p.q.r") == "int 2")
        #expect(try value(".p['q']") == "dyn {\"r\": 1}")
    }

    @Test func `constants of another shape are refused`() throws {
        let environment = ExpressionEnvironment([.init("price", .double)])
        let shape = try ExpressionProgram("price > 1.0", in: environment).shape
        var bindings = ExpressionBindings(environment)
        bindings["price"] = .double(2)
        #expect(try shape.holds(bindings, constants: [.double(1)]))
        for constants in [[], [ExpressionValue.double(1), .double(2)]] {
            let error = #expect(throws: ExpressionError.self) { try shape.holds(bindings, constants: constants) }
            #expect(error?.code == .wrongConstants)
        }
        let error = #expect(throws: ExpressionError.self) { try shape.holds(bindings, constants: [.string("a")]) }
        #expect(error?.code == .noOverload)
    }

    @Test func `a value that is not a Boolean does not count as true, and is reported`() throws {
        let environment = ExpressionEnvironment([.init("x", .dynamic)])
        var bindings = ExpressionBindings(environment)
        bindings["x"] = .int(1)
        let error = #expect(throws: ExpressionError.self) { try ExpressionProgram("x", in: environment).holds(bindings) }
        #expect(error?.code == .noOverload)
    }

    @Test func `an error contains its place`() throws {
        let environment = ExpressionEnvironment([.init("é", .int)])
        let error = #expect(throws: ExpressionError.self) {
            try ExpressionProgram.unchecked("'ü' == 'ü' ?\n 1 / 0 : 2", in: environment).value(
                ExpressionBindings(environment))
        }
        #expect(error?.position.offset == 16)
        #expect(error?.position.line == 2)
        #expect(error?.position.column == 4)
    }

    @Test(arguments: [
        "price > 1 && (a || b)", "!(a && !b)", "-x - -y", "(a ? b : c) ? d : e", "x.map(y, z, y + 1)", "has(a.b.c)",
        "{'a': [1, 2u, 3.5, b'\\x00', null]}",
        "'quo\"te\\n'.matches('a\\\\d')", "a[1].b.c(d)", ".a.b", "1 - (2 - 3)", "(1 - 2) - 3", "m.`a-b`", "x in [true]",
        "-9223372036854775808", "1e300 < 5e-324",
    ])
    func `a condition is written as one that reads the same`(source: String) throws {
        let environment = ExpressionEnvironment()
        let program = try ExpressionProgram.unchecked("dyn(\(source)) == 1 && z", in: environment)
        let text = try #require(program.terms.alternatives.first.map { $0.terms.map(\.description) + $0.residue })
        for part in text {
            let again = try ExpressionProgram.unchecked(part, in: environment)
            let parts = again.terms.alternatives.flatMap { $0.terms.map(\.description) + $0.residue }
            #expect(parts == [part])
        }
    }

    @Test(arguments: [
        "list(int)", "map(string, list(dyn))", "google.protobuf.Timestamp", "bool", "null_type", "map(int, double)",
    ])
    func `types are read as they are written`(text: String) {
        #expect(ExpressionType(text)?.description == text)
    }

    @Test(arguments: [
        "list(", "map(string)", "map(double, int)", "integer", "", "list(int) x",
        String(repeating: "list(", count: 40) + "int" + String(repeating: ")", count: 40),
        String(repeating: "list(", count: 1000),
    ])
    func `a text that is not a type is refused`(text: String) {
        #expect(ExpressionType(text) == nil)
    }
}
