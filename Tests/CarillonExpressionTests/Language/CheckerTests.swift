import CarillonExpression
import TestSupport
import Testing

struct CheckerTests {
    static let variables: [ExpressionEnvironment.Variable] = [
        .init("price", .double), .init("count", .int), .init("name", .string),
        .init("tags", .list(.string), maximumSize: 20), .init("any", .dynamic),
        .init("fields", .map(key: .string, value: .double), maximumSize: 20), .init("at", .timestamp),
        .init("order.id", .int), .init("flag", .bool),
    ]

    @Test(arguments: [
        ("price > 100", "bool"), ("tags.exists(i, t, i > 0 && t == 'a')", "bool"),
        ("tags.exists(i, t, t > i)", "refused: type"), ("fields.transformList(k, v, v)", "list(double)"),
        ("fields.transformMap(k, v, k)", "map(string, string)"), ("tags.transformMap(i, t, size(t))", "map(int, int)"),
        ("fields.all(k, v, v)", "refused: type"), ("cel.bind(p, price, p > 1.0)", "bool"),
        ("cel.bind(p, name, p + 1)", "refused: type"), ("count.transformList(i, v, v)", "refused: type"),
        ("4 < 4.5", "refused: type"), ("1 == 1u", "refused: type"), ("4 in [1.5]", "refused: type"),
        ("!-3", "refused: type"), ("([1] + [dyn('a')])[0]", "dyn"), ("[]", "list(dyn)"), ("price == 100", "bool"),
        ("count in [1.5, 2.5]", "bool"), ("price * 2", "refused: type"),
        ("price * 2.0", "double"), ("count + 1", "int"), ("4 == 'x'", "refused: type"), ("4 == dyn('x')", "bool"),
        ("[4] == ['x']", "refused: type"),
        ("[dyn(4)] == ['x']", "bool"), ("4 in ['x']", "refused: type"), ("4 in [dyn('x')]", "bool"),
        ("4 < 'x'", "refused: type"), ("4 < dyn('x')", "bool"),
        ("true ? 1 : 'a'", "refused: type"), ("true ? 1 : dyn('a')", "dyn"), ("count ? 1 : 2", "refused: type"),
        ("!-(3)", "refused: syntax"), ("!(-(3))", "refused: type"),
        ("name && true", "refused: type"), ("any && true", "bool"), ("flag || name", "refused: type"),
        ("[1, 'a']", "list(dyn)"), ("[]", "list(dyn)"),
        ("[] == [1]", "bool"), ("[1] + []", "list(int)"), ("{'a': 1}", "map(string, int)"), ("{}", "map(dyn, dyn)"),
        ("{1.5: 1}", "refused: type"),
        ("{'a': 1, 'b': 'c'}", "map(string, dyn)"), ("tags[0]", "string"), ("tags['a']", "refused: type"),
        ("fields['a']", "double"), ("fields.a", "double"),
        ("fields[1]", "refused: type"), ("name.a", "refused: type"), ("name[0]", "refused: type"), ("any.a[0].b", "dyn"),
        ("has(fields.a)", "bool"),
        ("has(name.a)", "refused: type"), ("tags.all(t, t.startsWith('a'))", "bool"), ("tags.all(t, t)", "refused: type"),
        ("tags.map(t, size(t))", "list(int)"),
        ("tags.filter(t, t == 'a')", "list(string)"), ("fields.map(k, fields[k])", "list(double)"),
        ("count.map(t, t)", "refused: type"),
        ("price.startsWith('a')", "refused: type"), ("startsWith(name, 'a')", "refused: type"), ("size(name)", "int"),
        ("name.size()", "int"),
        ("size(count)", "refused: type"), ("int(name)", "int"), ("at.getHours()", "int"), ("at.getHours('UTC')", "int"),
        ("at.getHours(1)", "refused: type"),
        ("at - at", "google.protobuf.Duration"), ("at + duration('1s')", "google.protobuf.Timestamp"),
        ("at + at", "refused: type"), ("at == null", "bool"),
        ("count == null", "refused: type"), ("name == null", "refused: type"), ("order.id + 1", "int"),
        ("order.name", "refused: unknown_name"),
        ("prise", "refused: unknown_name"), ("sized(name)", "refused: unknown_name"),
        ("crosses(1, 2, 3)", "refused: unknown_name"), ("int", "type"),
        ("type(count) == int", "bool"), ("-name", "refused: type"), ("-any", "dyn"), ("any + 1", "int"),
        ("any + any", "dyn"), ("any < 1.5", "bool"), ("name.matches('[')", "refused: pattern"),
        ("name.matches('a{1001}')", "refused: pattern"), ("prise + prose", "refused: unknown_name, unknown_name"),
        ("[1].map(x, x + y)", "refused: unknown_name"),
        ("size(1, 2)", "refused: type"), ("all(1)", "refused: unknown_name"), ("[[1], []][1]", "list(int)"),
        ("null", "null_type"), ("'a' in fields", "bool"), ("1 in fields", "refused: type"),
        ("[1, 2u].all(x, x > 0)", "bool"), ("1 % 2.0", "refused: type"), ("[].exists(y, y == [y])", "refused: type"),
        ("[[], [1]][0] == ['a']", "refused: type"),
    ])
    func `types are found, and meaningless expressions are refused`(source: String, type: String) {
        #expect(Trial.check(source, Self.variables) == type)
    }

    @Test func `extensions are checked with numbers of any type`() {
        let extensions = Set(ExpressionExtension.allCases)
        #expect(Trial.check("crosses(count, price, 3u)", Self.variables, extensions: extensions) == "bool")
        #expect(Trial.check("crosses(name, price, 3)", Self.variables, extensions: extensions) == "refused: type")
        #expect(Trial.check("version(name) >= version('1.2')", Self.variables, extensions: extensions) == "bool")
        #expect(Trial.check("within(fields, 1, 2.0, 3)", Self.variables, extensions: extensions) == "bool")
    }

    @Test func `a condition that could take too long is refused before it is evaluated`() {
        var limits = ExpressionLimits()
        limits.variableSize = 100
        limits.cost = 5000
        let numbers: [ExpressionEnvironment.Variable] = [.init("a", .list(.int)), .init("b", .list(.int), maximumSize: 10)]
        #expect(Trial.check("a.all(x, x > 0)", numbers, limits: limits) == "bool")
        #expect(Trial.check("b.all(x, a.exists(y, y == x))", numbers, limits: limits) == "bool")
        #expect(Trial.check("a.all(x, a.exists(y, y == x))", numbers, limits: limits) == "refused: cost")
        #expect(Trial.check("[1, 2].all(x, [3, 4].all(y, x < y))", numbers, limits: limits) == "bool")
        let texts: [ExpressionEnvironment.Variable] = [.init("s", .string)]
        #expect(Trial.check("s.contains(s)", texts, limits: limits) == "bool")
        #expect(Trial.check("s.matches('a{100}')", texts, limits: limits) == "refused: cost")
    }

    @Test(arguments: [
        "a.map(x, a.map(y, a.map(z, 1)))", "a.all(x, a.all(y, a.all(z, true))) || true", "a.map(x, s + s + s).size() > 0",
        "a.exists(x, s.contains('aaaaaaaaab'))",
        "a.all(x, s.matches('(a*)*b|' + 'c'))", "a.all(x, a == a)", "a.all(x, s == s)", "a.all(x, 999 in a)",
        "a.map(x, string(b)).size() > 0",
        "a.all(x, s.matches('a{200}b') || true)",
    ])
    func `an evaluation ends at its budget, and no operator hides that`(source: String) {
        var limits = ExpressionLimits()
        limits.cost = 10_000
        let variables: [String: ExpressionValue] = [
            "a": .list((0..<1000).map { .int($0) }), "s": .string(String(repeating: "a", count: 5000)),
            "b": .bytes(Array(repeating: 0x61, count: 5000)),
        ]
        let duration = ThreadTime.measure {
            #expect(Trial.unchecked(source, variables, limits: limits) == "error: budget_exceeded")
        }
        // Thirty milliseconds and less where it is not a debug build.
        #expect(duration < .seconds(10))
    }

    @Test func `each element costs in any evaluation`() {
        var limits = ExpressionLimits()
        limits.cost = 500
        let elements = ExpressionValue.list(Array(repeating: .null, count: 1000))
        #expect(Trial.unchecked("a.all(x, true)", ["a": elements], limits: limits) == "error: budget_exceeded")
        #expect(Trial.unchecked("a.size() == 1000", ["a": elements], limits: limits) == "true")
    }

    @Test func `sizes beyond all measure are refused and nothing more`() {
        let large: [ExpressionEnvironment.Variable] = [
            .init("a", .list(.int), maximumSize: .max), .init("s", .string, maximumSize: .max),
        ]
        for source in [
            "a.all(x, a.all(y, a.all(z, true)))", "s.contains(s)", "s.matches(s)", "a.map(x, s + s + s).size() > 0",
        ] {
            #expect(Trial.check(source, large) == "refused: cost")
        }
    }

    @Test func `an element of another type makes the elements those of any type, however deep`() {
        for source in ["[[1], [dyn('a')]]", "[[dyn('a')], [1]]", "b ? [1] : [dyn(1)]", "[{'a': 1}, {'a': dyn(1)}]"] {
            #expect(Trial.check(source, [.init("b", .bool)]).contains("dyn"), "\(source)")
        }
        #expect(Trial.check("[[1], [2]]") == "list(list(int))")
        #expect(Trial.check("[].map(x, [x + 1 == 2, x + 'a' == 'b'])") == "list(list(bool))", "the failed attempt is undone")
        #expect(Trial.check("[[], [[1]], []]") == "list(list(list(int)))")
    }

    @Test func `thousands of lists with unknown elements and of long names are checked at once`() {
        let duration = ThreadTime.measure(checkUnknownElements)
        #expect(duration < .seconds(10))
    }

    private func checkUnknownElements() {
        let empty = "[" + Array(repeating: "[]", count: 4000).joined(separator: ", ") + "]"
        #expect(Trial.check(empty) == "list(list(dyn))")
        #expect(
            Trial.check("[" + Array(repeating: "[].map(x, x)", count: 1200).joined(separator: ", ") + "]")
                == "list(list(dyn))")
        let name = "a" + String(repeating: ".b", count: 90)
        let names = "[" + Array(repeating: name, count: 50).joined(separator: ", ") + "]"
        let container = Array(repeating: "c", count: 5).joined(separator: ".")
        #expect(Trial.check(names, [.init("a", .dynamic)], container: container) == "list(dyn)")
        #expect(Trial.unchecked(names, container: container).hasPrefix("error"))
    }

    @Test func `long keys and zones cost by their length, and no zone is as long as they may be`() {
        var limits = ExpressionLimits()
        limits.cost = 3000
        let key = String(repeating: "k", count: 5000)
        let variables: [String: ExpressionValue] = [
            "m": .map(["a": .int(1)]), "k": .string(key), "l": .list(Array(repeating: .null, count: 20)),
            "t": ExpressionTimestamp("1970-01-01T00:00:00Z").map(ExpressionValue.timestamp) ?? .null,
        ]
        for source in ["k in m", "m[k] == 1", "{k: 1}.size() == 2", "t.getHours(k) == 1"] {
            #expect(
                Trial.unchecked("l.exists(x, \(source))", variables, limits: limits) == "error: budget_exceeded", "\(source)"
            )
        }
        #expect(Trial.unchecked("l.exists(x, has(m.\(key)))", variables, limits: limits) == "error: budget_exceeded")
        #expect(Trial.unchecked("l.exists(x, [m][0].\(key))", variables, limits: limits) == "error: budget_exceeded")
        #expect(Trial.unchecked("l.exists(x, \(key))", variables, limits: limits) == "error: budget_exceeded")
        #expect(Trial.unchecked("l.exists(x, m.\(key))", variables, limits: limits) == "error: budget_exceeded")
        let asked = ExpressionEnvironment([.init("z", .string)], zoneOffset: { name, _ in name.utf8.count })
        func seconds(_ count: Int) -> String {
            var bindings = ExpressionBindings(asked)
            bindings["z"] = .string(String(repeating: "z", count: count))
            let program = try? ExpressionProgram("timestamp(0).getSeconds(z)", in: asked)
            return (try? program?.value(bindings).literalText) ?? "error"
        }
        #expect(seconds(40) == "40" && seconds(64) == "4" && seconds(65) == "error")
    }

    @Test func `types do not double with each map in a map`() {
        let source = "[1]" + String(repeating: ".map(a, {a: a})", count: 40)
        #expect(Trial.check(source).hasPrefix("refused: type"))
    }

    @Test func `values made of constants and unreadable patterns cost as well`() {
        var limits = ExpressionLimits()
        limits.cost = 20_000
        let elements = ExpressionValue.list(Array(repeating: .null, count: 1000))
        let row = String(repeating: "1,", count: 100)
        for source in [
            "l.map(i, [i, \(row)])", "l.exists(i, \(Array(repeating: "false", count: 100).joined(separator: "||")))",
            "l.exists(i, 'x'.matches('((((){100}){100}){100})' + ''))",
        ] {
            #expect(Trial.unchecked(source, ["l": elements], limits: limits) == "error: budget_exceeded")
        }
    }

    @Test func `a limit of depth cannot exceed the stack`() {
        var limits = ExpressionLimits()
        limits.depth = 100_000
        #expect(limits.depth == 250)
    }

    @Test func `values that lie too deep are not compared`() {
        var deep = ExpressionValue.list([])
        for _ in 0..<300 { deep = .list([deep]) }
        #expect(Trial.unchecked("a == b || true", ["a": deep, "b": deep]) == "error: too_deep")
    }
}
