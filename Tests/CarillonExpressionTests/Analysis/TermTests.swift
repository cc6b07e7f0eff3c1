import CarillonExpression
import TestSupport
import Testing

struct TermTests {
    static let environment = ExpressionEnvironment([
        .init("x", .dynamic), .init("y", .dynamic), .init("z", .dynamic), .init("s", .dynamic), .init("l", .dynamic),
    ])

    static func terms(_ source: String) throws -> [String] {
        try ExpressionProgram.unchecked(source, in: environment).terms.alternatives.map {
            ($0.terms.map(\.description) + $0.residue.map { "evaluate \($0)" }).joined(separator: "; ")
        }
    }

    @Test(
        arguments: [
            ("x > 1", ["x > 1"]), ("1 < x", ["x > 1"]), ("1 >= x", ["x <= 1"]), ("2 == x", ["x == 2"]),
            ("x in [1, 2]", ["x in [1, 2]"]), ("x > 1 && y == 'a'", ["x > 1; y == \"a\""]),
            ("x > 1 || y == 'a'", ["x > 1", "y == \"a\""]),
            ("(x > 1 || y > 1) && z", ["x > 1; z == true", "y > 1; z == true"]), ("!(x > 1)", ["!(x > 1)"]),
            ("!z", ["z == false"]),
            ("!(x > 1 && z)", ["!(x > 1)", "z == false"]), ("!(x > 1 || z)", ["!(x > 1); z == false"]),
            ("x < y", ["x < y == true"]), ("s.size() > 3", ["s.size() > 3"]),
            ("s.startsWith('a')", ["evaluate s.startsWith(\"a\")"]), ("x + 1 > 2 && y > 1", ["y > 1; evaluate (x + 1) > 2"]),
            ("!(x + 1 > 2)", ["evaluate !((x + 1) > 2)"]),
            ("l.exists(i, i == y)", ["l.exists(i, i == y) == true"]), ("true", ["evaluate true"]),
            ("x.a.b != 2", ["x.a.b != 2"]), ("!!z", ["z == true"]),
        ] as [(String, [String])])
    func `an index gets the terms of a condition that it can use`(source: String, terms: [String]) throws {
        #expect(try Self.terms(source) == terms)
    }

    @Test func `a term names the constants of the condition that it compares with`() throws {
        let source = "size(s) > 3 && (1 < x || y in ['a', 'b']) && z && l + 5 > 0"
        let program = try ExpressionProgram.unchecked(source, in: Self.environment)
        #expect(program.shape.constantCount == program.constants.count && program.constants.count == 5)
        for alternative in program.terms.alternatives {
            for term in alternative.terms {
                guard let place = term.place else {
                    #expect(term.expression == "z")
                    continue
                }
                let named = program.constants[place]
                let said = term.comparison == .oneOf ? ExpressionValue.list(term.constants) : term.constants[0]
                #expect(named.literalText == said.literalText, "\(term)")
            }
        }
        #expect(program.terms.alternatives.map { $0.terms.map(\.place) } == [[0, 1, nil], [0, 2, nil]])
    }

    @Test func `thousands of parts are taken apart at once`() throws {
        let source = (0..<1200).map { "x == \($0)" }.joined(separator: " && ")
        let duration = try ThreadTime.measure {
            let program = try ExpressionProgram.unchecked(source, in: Self.environment)
            #expect(program.terms.alternatives.map(\.terms.count) == [1200])
        }
        #expect(duration < .seconds(15))
    }

    @Test func `more than eight alternatives are not taken apart`() throws {
        let pairs = (0..<3).map { "(x == \($0) || y == \($0))" }
        #expect(try Self.terms(pairs.joined(separator: " && ")).count == 8)
        let four = try Self.terms((pairs + ["(x > 1 || y > 1)"]).joined(separator: " && "))
        #expect(four.count == 8)
        #expect(four.allSatisfy { $0.contains("evaluate (x > 1) || (y > 1)") })
        #expect(try Self.terms((0..<9).map { "x == \($0)" }.joined(separator: " || ")).count == 1)
    }

    /// The evaluator and the terms over random conditions and random values, of unlike types and NaN among them.
    @Test(arguments: RandomSeed.some(1...8))
    func `terms decide exactly as the evaluator does`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let values: [ExpressionValue?] = [
            nil, .null, .bool(true), .bool(false), .int(0), .int(1), .int(2), .int(9_007_199_254_740_993), .uint(1),
            .uint(.max), .double(0.5), .double(1),
            .double(.nan), .double(9_007_199_254_740_992), .double(-0.0), .string(""), .string("a"), .string("é"),
            .string("e\u{301}"), .list([]), .list([.int(1)]),
        ]
        let constants = ["0", "1", "2", "1u", "0.5", "1.0", "9007199254740993", "'a'", "'é'", "true", "null", "[1]", "-1"]
        func condition(_ depth: Int) -> String {
            let name = ["x", "y", "z"].randomElement(using: &random) ?? "x"
            let constant = constants.randomElement(using: &random) ?? "0"
            switch Int.random(in: 0..<(depth > 2 ? 5 : 9), using: &random) {
            case 0: return name
            case 1: return "\(name) in [\(constant), \(constants.randomElement(using: &random) ?? "0")]"
            case 2: return "\(constant) \(["<", "<=", ">", ">=", "==", "!="].randomElement(using: &random) ?? "<") \(name)"
            case 3, 4:
                return "\(name) \(["<", "<=", ">", ">=", "==", "!="].randomElement(using: &random) ?? "<") \(constant)"
            case 5: return "!(\(condition(depth + 1)))"
            case 6, 7: return "(\(condition(depth + 1)) && \(condition(depth + 1)))"
            default: return "(\(condition(depth + 1)) || \(condition(depth + 1)))"
            }
        }
        var held = 0
        var turns = ScenarioTurns(400)
        while turns.next(unless: held > 1000) {
            let source = condition(0)
            let program = try ExpressionProgram.unchecked(source, in: Self.environment)
            let terms = program.terms
            for _ in 0..<20 {
                var bindings = ExpressionBindings(Self.environment)
                for name in ["x", "y", "z"] { bindings[name] = values.randomElement(using: &random) ?? nil }
                let evaluated = (try? program.holds(bindings)) ?? false
                let found = terms.alternatives.contains { alternative in
                    alternative.terms.allSatisfy { term in bindings[term.expression].map(term.holds) ?? false }
                        && alternative.residue.allSatisfy { part in
                            (try? ExpressionProgram.unchecked(part, in: Self.environment).holds(bindings)) ?? false
                        }
                }
                #expect(evaluated == found, "seed \(seed): \(source)")
                held += evaluated ? 1 : 0
            }
        }
        #expect(held > 1000)
    }
}
