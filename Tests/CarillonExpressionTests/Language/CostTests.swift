import TestSupport
import Testing

@testable import CarillonExpression

/// The estimated cost of a condition, compared with its actual cost.
struct CostTests {
    private static let variableSize = 12
    private static let elementSize = 5

    private static let environment: ExpressionEnvironment = {
        var limits = ExpressionLimits()
        limits.variableSize = variableSize
        limits.elementSize = elementSize
        limits.cost = 10_000_000
        return ExpressionEnvironment(
            [
                .init("i", .int), .init("d", .double), .init("b", .bool), .init("s", .string),
                .init("short", .string, maximumSize: 3),
                .init("raw", .bytes), .init("names", .list(.string)), .init("numbers", .list(.int), maximumSize: 7),
                .init("rows", .list(.list(.string))), .init("fields", .map(key: .string, value: .string)),
                .init("pair", .map(key: .string, value: .string), maximumSize: 2), .init("anything", .dynamic),
                .init("t", .timestamp), .init("a.dotted.name", .string),
            ], extensions: Set(ExpressionExtension.allCases), limits: limits, zoneOffset: Trial.zones)
    }()

    /// Makes expressions of a type, and values as large as they may be.
    private struct Generator {
        var random: SeededRandom

        mutating func one<Value>(of values: Value...) -> Value {
            values[Int.random(in: values.indices, using: &random)]
        }

        mutating func letters(_ size: Int) -> String {
            String((0..<size).map { _ in one(of: Character("a"), "é", "\u{1F514}", "1", "-") })
        }

        mutating func value(_ type: ExpressionType, _ size: Int) -> ExpressionValue {
            switch type {
            case .int: return .int(Int64.random(in: -3...20, using: &random))
            case .double: return .double(Double.random(in: -3...20, using: &random))
            case .bool: return .bool(Bool.random(using: &random))
            case .string: return .string(letters(size))
            case .bytes: return .bytes(Array(repeating: 7, count: size))
            case .timestamp: return ExpressionTimestamp("2024-02-29T12:00:00Z").map(ExpressionValue.timestamp) ?? .null
            case .list(let element): return .list((0..<size).map { _ in value(element, CostTests.elementSize) })
            case .map(_, let element):
                var map = ExpressionMap()
                for number in 0..<size {
                    _ = map.insert(
                        value(element, CostTests.elementSize),
                        for: .string(number < 2 ? "k\(number)" : "k\(number)" + letters(1)))
                }
                return .map(map)
            default: return value(one(of: .string, .list(.string), .int), size)
            }
        }

        mutating func bool(_ depth: Int) -> String {
            guard depth > 0 else { return one(of: "b", "true", "i > 3", "s == short") }
            let next = depth - 1
            switch Int.random(in: 0..<14, using: &random) {
            case 0: return "(\(bool(next)) && \(bool(next)))"
            case 1: return "(\(bool(next)) || \(bool(next)) || \(bool(next)))"
            case 2: return "!\(bool(next))"
            case 3: return "\(text(next)) \(one(of: "==", "!=", "<", ">=")) \(text(next))"
            case 4: return "\(text(next)).\(one(of: "contains", "startsWith", "endsWith"))(\(text(next)))"
            case 5: return "\(text(next)).matches(\(one(of: "'a+é'", "'[a-f1]*-$'", "short", "s")))"
            case 6: return "\(list(next)) \(one(of: "==", "!=")) \(list(next))"
            case 7: return "\(text(next)) in \(list(next))"
            case 8: return "\(text(next)) in fields"
            case 9:
                let variables = one(of: "e", "i, e")
                return
                    "\(list(next)).\(one(of: "all", "exists", "exists_one"))(\(variables), e == \(text(next)) || \(bool(next)))"
            case 10: return "rows.exists(r, \(text(next)) in r)"
            case 11:
                return one(
                    of: "rows == rows", "fields == fields", "anything == anything", "anything == s", "raw < raw + raw")
            case 12: return "has(fields.k1) && fields.k1 == \(text(next))"
            default: return "\(number(next)) \(one(of: "<", "==", ">")) \(number(next))"
            }
        }

        mutating func text(_ depth: Int) -> String {
            guard depth > 0 else { return one(of: "s", "short", "'ké'", "a.dotted.name") }
            let next = depth - 1
            switch Int.random(in: 0..<7, using: &random) {
            case 0: return "(\(text(next)) + \(text(next)))"
            case 1: return "(\(bool(next)) ? \(text(next)) : \(text(next)))"
            case 2: return "string(\(one(of: "i", "d", "b", "raw", "t", "s")))"
            case 3: return "fields[\(text(next))]"
            case 4: return one(of: "names[i]", "(pair.k1 + pair.k0)")
            case 5: return "\(text(next))"
            default: return "string(bytes(\(text(next))))"
            }
        }

        mutating func list(_ depth: Int) -> String {
            guard depth > 0 else { return one(of: "names", "['a', 's']", "rows[i]") }
            let next = depth - 1
            switch Int.random(in: 0..<5, using: &random) {
            case 0: return "(\(list(next)) + \(list(next)))"
            case 1: return "\(list(next)).filter(e, \(bool(next)))"
            case 2: return "numbers.map(n, \(text(next)))"
            case 3: return "[\(text(next)), \(text(next))]"
            default: return "\(list(next)).map(e, e != short, e + \(text(next)))"
            }
        }

        mutating func number(_ depth: Int) -> String {
            guard depth > 0 else { return one(of: "i", "d", "7", "2.5") }
            let next = depth - 1
            switch Int.random(in: 0..<5, using: &random) {
            case 0: return "size(\(text(next)))"
            case 1: return "size(\(list(next)))"
            case 2: return "(i + size(\(list(next))))"
            case 3: return "t.getHours(\(one(of: "'UTC'", "'Europe/Berlin'", "s")))"
            default: return one(of: "int(\(text(next)))", "double(\(text(next)))", "i")
            }
        }
    }

    /// Unless elements are larger than they are taken to be: those of lists that the condition makes itself, which are small here.
    @Test func `no evaluation costs more than its estimate`() throws {
        var generator = Generator(random: .forTest())
        var tried = 0
        var turns = ScenarioTurns(1500)
        while turns.next(unless: tried > 700) {
            let source = generator.bool(3)
            guard let program = try? ExpressionProgram(source, in: Self.environment) else { continue }
            tried += 1
            for isFull in [true, true, false] {
                var bindings = ExpressionBindings(Self.environment)
                for variable in Self.environment.variables {
                    let most = variable.maximumSize ?? Self.variableSize
                    bindings[variable.name] = generator.value(
                        variable.type, isFull ? most : Int.random(in: 0...most, using: &generator.random))
                }
                let spent = Self.spent(program, bindings)
                #expect(spent <= program.cost.upperBound, "\(source)")
            }
        }
        #expect(tried > 700)
    }

    @Test func `a pattern that only the evaluation knows costs its reading`() throws {
        let environment = ExpressionEnvironment([
            .init("s", .string, maximumSize: 0), .init("pattern", .string, maximumSize: 250),
        ])
        let program = try ExpressionProgram("s.matches(pattern)", in: environment)
        var bindings = ExpressionBindings(environment)
        bindings["s"] = .string("")
        bindings["pattern"] = .string(String(repeating: "a", count: 250))
        let spent = Self.spent(program, bindings)
        #expect(spent > 500 && spent <= program.cost.upperBound)
    }

    private static func spent(_ program: ExpressionProgram, _ bindings: ExpressionBindings) -> Int {
        var spent = 0
        _ = try? Evaluation.run(program.compiled, constants: program.constants, bindings, in: program.environment) {
            evaluation throws(Fault) in
            defer { spent = evaluation.spent }
            return try evaluation.value(program.compiled.root)
        }
        return spent
    }
}
