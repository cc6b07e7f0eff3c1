import TestSupport
import Testing

@testable import CarillonExpression

/// Comparisons of one variable with constants, which a set answers together.
struct MembershipTests {
    private static let variables: [ExpressionEnvironment.Variable] = [
        .init("user", .string, maximumSize: 256), .init("region", .string), .init("level", .int), .init("ratio", .double),
        .init("open", .bool), .init("tags", .list(.string), maximumSize: 100), .init("anything", .dynamic),
    ]

    private static func environment(usesSets: Bool = true) -> ExpressionEnvironment {
        var limits = ExpressionLimits()
        limits.bytes = 120_000
        limits.nodes = 30_000
        limits.constants = 10_000
        return ExpressionEnvironment(variables, limits: limits, usesSets: usesSets)
    }

    private static func list(_ count: Int) -> String {
        "[" + (0..<count).map { "'t\($0)'" }.joined(separator: ", ") + "]"
    }

    private static func either(_ count: Int, _ term: (String) -> String) -> String {
        (0..<count).map { term("'t\($0)'") }.joined(separator: " || ")
    }

    private static let costs: [(String, Int)] = [
        ("user in " + list(15), 1), ("user in " + list(22), 2), ("user in " + list(5000), 313), ("'a' in tags", 7),
        ("user == 'a'", 1), ("'a' == user", 1), ("level == 3", 1), ("tags.exists(t, t == 'a')", 7),
        ("tags.exists(t, t in " + list(32) + ")", 9), (either(10) { $0 + " in tags" }, 7),
        (either(2500) { $0 + " in tags" }, 163), (either(32) { "user == " + $0 }, 3), ("level in [1, 2.5, 3]", 1),
        ("user in ['a'] && ('b' in tags || 'c' in tags)", 10), ("'a' in tags || open || 'b' in tags", 10),
        ("user != 'a'", 2), ((0..<32).map { "user != 't\($0)'" }.joined(separator: " && "), 4),
        ((0..<10).map { "!('t\($0)' in tags)" }.joined(separator: " && "), 8),
    ]

    @Test(arguments: costs)
    func `a membership costs a unit, and one for each 16 constants and each 16 elements`(source: String, cost: Int) throws {
        let program = try ExpressionProgram(source, in: Self.environment())
        #expect(program.cost.upperBound == cost)
        var bindings = ExpressionBindings(program.environment)
        bindings["tags"] = .list(Array(repeating: .string("other"), count: 100))
        for name in ["user", "region"] { bindings[name] = .string(String(repeating: "x", count: 256)) }
        bindings["open"] = .bool(false)
        bindings["level"] = .int(1)
        #expect(Self.spent(program, bindings) <= cost)
    }

    @Test func `a lookup of the elements of a list ends at the limit`() throws {
        let program = try ExpressionProgram("'a' in tags", in: Self.environment())
        var bindings = ExpressionBindings(program.environment)
        bindings["tags"] = .list(Array(repeating: .string("x"), count: 1600))
        #expect(try !program.holds(bindings, limit: 101))
        #expect(throws: ExpressionError.self) { try program.holds(bindings, limit: 100) }
    }

    /// This number of levels of `||`, each with a part of 5,000 constants.
    private static func nested(_ levels: Int, isRight: Bool, _ term: (Int) -> String) -> String {
        let each = 5000 / levels
        var source = "user == 'last'"
        for level in 0..<levels {
            let terms = (0..<each).map { term(level * each + $0) }.joined(separator: " || ")
            source = isRight ? "\(terms) || (\(source))" : "(\(source)) || \(terms)"
        }
        return source
    }

    @Test(.timeLimit(.minutes(5)), arguments: [true, false])
    func `nested conditions are read in a time that grows with their constants`(isRight: Bool) throws {
        for levels in [45, 90] {
            let one = Self.nested(levels, isRight: isRight) { "user == 't\($0)'" }
            let program = try ExpressionProgram(one, in: Self.environment())
            #expect(program.compiled.sets.count == 1)
            guard case .oneOf("user", let constants)? = program.need else { return #expect(Bool(false)) }
            #expect(constants.count == 5000 / levels * levels + 1)
            // Each level has a part that is no membership.
            let mixed = Self.nested(levels, isRight: isRight) {
                $0.isMultiple(of: 25) ? "level > \($0)" : "user == 't\($0)'"
            }
            #expect(try ExpressionProgram(mixed, in: Self.environment()).compiled.sets.count <= levels + 1)
        }
    }

    private static func spent(_ program: ExpressionProgram, _ bindings: ExpressionBindings) -> Int {
        var spent = 0
        _ = try? Evaluation.run(program.compiled, constants: program.constants, bindings, in: program.environment) {
            evaluation throws(Fault) in
            defer { spent = evaluation.spent }
            return try evaluation.truth(program.compiled.root)
        }
        return spent
    }

    private static let sources = [
        "user == 'é'", "user in ['a', 'é', '']", "user in []", "!(user in ['a'])", "user == 'a' || user in ['b', 'c']",
        "user == 'a' || level == 3 || user == 'b' || level == 4", "level == 3", "level == 3.0", "level == 3.5",
        "level == 9007199254740992.0", "level in [1, 2, 3, 9007199254740993]", "ratio == 3", "ratio in [1.5, 3.0, -0.0]",
        "ratio in [9007199254740993]", "open == false", "open", "!open", "'a' in tags", "'a' in tags || 'b' in tags",
        "'a' in tags || user == 'a' || 'b' in tags", "tags.exists(t, t == 'b')",
        "tags.exists(t, t in ['a', 'b'] || 'c' == t)",
        "tags.exists(user, user == 'b') && user == 'a'", "tags.all(t, user == 'a' || user == 'b')",
        "'a' in tags || region == 'x'", "region == 'x' || region == 'y'", "user == 'a' ? 'a' in tags : 'b' in tags",
        "anything == 'a' || anything == 'b'", "user in ['a', 'b'] && !('a' in tags)", "user != 'a'", "!(user != 'a')",
        "user != 'a' && level > 3 && user != 'b'", "!('a' in tags) && !('b' in tags)", "region != 'x' && region != 'y'",
        "!(user == 'a' || user == 'b') && open", "!(user != 'a' && user != 'b')", "level in [3, 4.5]", "ratio != 1.5",
        "user != 'a' || user != 'b'", "user == 'a' && user == 'b'", "(user == 'a' || (user == 'b' || user == ''))",
    ]

    private static let numbers: [(Int64, Double)] = [
        (3, 3), (4, 1.5), (9_007_199_254_740_993, 9_007_199_254_740_992), (1, 0),
    ]

    @Test(arguments: sources)
    func `sets answer what comparisons answer`(source: String) throws {
        let plain = try ExpressionProgram(source, in: Self.environment(usesSets: false))
        let program = try ExpressionProgram(source, in: Self.environment())
        var tried = 0
        for user in ["a", "b", "é", "e\u{301}", ""] {
            for (level, ratio) in Self.numbers {
                for tags in [[], ["a"], ["x", "b"], ["c", "c"]] {
                    func value(_ program: ExpressionProgram) -> String {
                        var bindings = ExpressionBindings(program.environment)
                        bindings["user"] = .string(user)
                        bindings["level"] = .int(level)
                        bindings["ratio"] = .double(ratio)
                        bindings["open"] = .bool(level == 3)
                        bindings["tags"] = .list(tags.map { .string($0) })
                        bindings["anything"] = .string(user)
                        // There is no region.
                        do {
                            let holds = try program.holds(bindings)
                            return "\(holds)"
                        } catch {
                            return "\(error.code.name) at \(error.position.offset)"
                        }
                    }
                    #expect(value(program) == value(plain), "\(user) \(level) \(ratio) \(tags)")
                    tried += 1
                }
            }
        }
        #expect(tried == 80)
    }

    @Test func `only equal conditions have the same shape with sets`() throws {
        func key(_ source: String, usesSets: Bool) throws -> String {
            try ExpressionProgram(source, in: Self.environment(usesSets: usesSets)).shape.key
        }
        #expect(try key("user == 'a'", usesSets: true) != key("user == 'b'", usesSets: true))
        #expect(try key("user == 'a'", usesSets: false) == key("user == 'b'", usesSets: false))
    }

    @Test func `a condition has a limited number of constants, including negative ones`() throws {
        var limits = ExpressionLimits()
        limits.constants = 3
        #expect(Trial.check("[1, -2, 'a'] == []", limits: limits) == "bool")
        for source in ["[1, -2, 'a', null]", "[1, 2, -3, -4]"] {
            #expect(Trial.check(source, limits: limits) == "refused: size")
        }
    }

    private static let needs: [(String, String)] = [
        ("user == 'a'", "user:1"), ("!(user == 'a')", "-"), ("'a' in tags", "tags:1"),
        ("user == 'a' || user == 'b'", "user:2"), ("user == 'a' || level == 2", "any(user:1 level:1)"),
        ("user == 'a' || level > 2", "-"), ("user == 'a' && level > 2", "all(user:1)"),
        ("user == 'a' && level == 2", "all(user:1 level:1)"), ("!(level > 2 || !(user == 'a'))", "all(user:1)"),
        ("!(user != 'a' && level > 2)", "-"), ("open && level > 2", "all(open:1)"), ("!open", "open:1"),
        ("!(user != 'a')", "user:1"), ("user != 'a'", "-"), ("!(user != 'a' && user != 'b')", "user:2"),
        ("level in [1, 2.5]", "level:1"), ("level == 2.5", "level:0"), ("level == 9007199254740992.0", "-"),
        ("level > 2", "-"), ("anything == 'a'", "-"), ("(open || level > 2) && (level < 5 || user == 'a')", "-"),
        (
            either(12) { "(" + $0 + " in tags && level > 2)" },
            "any(" + Array(repeating: "all(tags:1)", count: 12).joined(separator: " ") + ")"
        ),
    ]

    @Test(arguments: needs)
    func `the variables that a condition needs are found`(source: String, need: String) throws {
        func text(_ need: ExpressionNeed) -> String {
            switch need {
            case .oneOf(let variable, let constants): "\(variable):\(constants.count)"
            case .any(let needs): "any(\(needs.map(text).joined(separator: " ")))"
            case .all(let needs): "all(\(needs.map(text).joined(separator: " ")))"
            }
        }
        #expect(try ExpressionProgram(source, in: Self.environment()).need.map(text) ?? "-" == need)
        #expect(try ExpressionProgram(source, in: Self.environment(usesSets: false)).need.map(text) == nil)
    }
}
