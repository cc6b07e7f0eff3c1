import Testing

@testable import CarillonExpression

struct SyntaxTests {
    @Test(arguments: [
        ("9223372036854775808", 0), ("0Xff", 1), ("3.", 2), ("1e", 2), ("0x", 2), ("12abc", 2), ("1e999", 0),
        ("true ? false ? 5 : 6 : 7", 13),
        ("size([4],)", 9), ("while", 0), ("m.in", 2), ("m.true", 2), (#"b'\u00e9'"#, 2), (#"'\q'"#, 1), (#"'\8'"#, 1),
        (#"'\12'"#, 1),
        (#"'\ud800'"#, 1), (#"'\U00110000'"#, 1), ("'a", 0), ("'a\nb'", 0), (#"'\"#, 1), ("[3].map(m.x, 1)", 9),
        ("has(m)", 4), ("has(m['x'])", 5), ("!-x", 1), ("[,1]", 2), ("[,,]", 2), ("{,1}", 2), ("!--3", 1),
        ("-!true", 1), ("", 0), ("1 +", 3), ("(1", 2), ("1)", 1), ("[1", 2), ("{1}", 2), ("{1: 2", 5), ("a b", 2),
        ("Type{a: 1}", 4), ("a.", 2),
        ("a..b", 2), ("1 = 2", 2), ("a & b", 2), ("#", 0), ("`a`", 0), ("if(true)", 0), ("18446744073709551616u", 0),
        ("é", 0), ("'é' é", 4),
        ("1 < 2 ? 3", 9), ("a.`", 3), ("f(", 2), ("f(1 2)", 4), ("[1,,2]", 3), ("x.map(1, 2)", 6),
    ])
    func `unreadable text is refused with its place`(source: String, offset: Int) throws {
        let refusal = #expect(throws: ExpressionRefusal.self) {
            try ExpressionProgram.unchecked(source, in: ExpressionEnvironment())
        }
        #expect(refusal?.problems.count == 1)
        #expect(refusal?.problems.first?.position.offset == offset, "\(refusal?.description ?? "")")
        #expect(refusal?.problems.first?.code == .syntax)
    }

    @Test(arguments: [
        ("m.`in`", "m.`in`"), ("m.`true`.while", "m.`true`.while"), ("has(m.`null`)", "has(m.`null`)"), ("!(-3)", "!(-3)"),
        ("-(5).f()", "-(5.f())"), ("(-5).f()", "-5.f()"), ("-(-3)", "-(-3)"), ("-(.5)", "-(0.5)"), ("--x", "-(-x)"),
        ("!x.y", "!x.y"), ("x.transformMap(k,v,v>1,k)", "x.transformMap(k, v, v > 1, k)"),
        ("x.existsOne(i,v,v)", "x.exists_one(i, v, v)"), ("cel.bind(x,1+1,x)", "cel.bind(x, 1 + 1, x)"),
        ("-[1][0]", "-[1][0]"), ("-'a'", "-\"a\""), ("1 - -3", "1 - -3"), ("!(a && b)", "!(a && b)"), ("-{}", "-{}"),
    ])
    func `a condition is written so that it reads the same`(source: String, text: String) throws {
        let written = try ExpressionProgram.unchecked(source, in: ExpressionEnvironment()).tree
        #expect(written.text(written.root) == text)
        let again = try ExpressionProgram.unchecked(text, in: ExpressionEnvironment()).tree
        #expect(again.text(again.root) == text && again.shapeKey == written.shapeKey)
    }

    @Test func `a problem is shown in its line, however the lines end, and long ones near the place`() throws {
        func shown(_ source: String) -> [String] {
            guard
                let refusal = #expect(
                    throws: ExpressionRefusal.self,
                    performing: {
                        try ExpressionProgram.unchecked(source, in: ExpressionEnvironment())
                    })
            else { return [] }
            return refusal.description.components("\n")
        }
        #expect(shown("1 +\r\n\t2 3\r\n") == ["2:4: a number was not expected here", "    \t2 3", "    \t  ^"])
        #expect(shown("1 +\n")[1...] == ["    ", "    ^"])
        let long = shown("[" + String(repeating: "1, ", count: 300) + "* " + String(repeating: ", 1", count: 300))
        #expect(long[1].count < 220 && long[2].count < 120 && long[1].hasPrefix("    …") && long[1].hasSuffix("…"))
        #expect(Array(long[1])[long[2].count - 1] == "*")
    }

    @Test(arguments: [
        ("0x1F", "31"), ("017", "17"), (".25", "0.25"), ("1.5E-3", "0.0015"), ("1e3", "1000.0"), ("0xFu", "15u"),
        ("5U", "5u"), ("[4, 5,]", "[4, 5]"),
        ("{'a': 1,}", #"{"a": 1}"#), (#"'\x41\102'"#, #""AB""#), (#"b'\377'"#, #"b"\xff""#), (#"'\377'"#, #""ÿ""#),
        (#"r'\n'.size()"#, "2"),
        (#"br'\n'.size()"#, "2"), (#"bR"\\".size()"#, "2"), ("'''a\nb'''.size()", "3"), (#""""a"b""".size()"#, "3"),
        ("1 // one\n + 1", "2"),
        (#"'\a\b\f\n\r\t\v\\\?\"\'\`'.size()"#, "12"), ("  \t\r\n\u{c} 1", "1"), ("'it''s'", "refused: syntax"),
        ("m.while", "7"), ("m.`while`", "7"),
        ("true||false&&false", "true"), ("1 < 2 == true", "true"), ("2 in [2] == true", "true"), ("-2 + 3", "1"),
        ("2 - -3", "5"), ("(((((1)))))", "1"),
        ("1 + 2 // end", "3"), ("'\\X41'", #""A""#), ("[,]", "[]"), ("{,}", "{}"), ("[1,]", "[1]"), ("B'a'", #"b"a""#),
        ("R'a'", #""a""#),
        ("rb'a'", "refused: syntax"),
    ])
    func `literals, comments and layout`(source: String, value: String) {
        #expect(Trial.unchecked(source, ["m": .map(["while": .int(7)])]) == value)
    }

    @Test(arguments: [
        (String(repeating: "(", count: 9999) + "1" + String(repeating: ")", count: 9999), "refused: depth"),
        (String(repeating: "[", count: 10_000), "refused: depth"),
        (String(repeating: "!", count: 10_000) + "true", "refused: depth"),
        (String(repeating: "-", count: 10_000) + "1", "refused: depth"),
        (String(repeating: "{1:", count: 5000), "refused: depth"),
        ("a" + String(repeating: ".a", count: 5000), "refused: depth"),
        ("1" + String(repeating: "+1", count: 4000), "refused: depth"),
        (String(repeating: "true?1:", count: 2500) + "1", "refused: depth"),
        ("a" + String(repeating: "[0]", count: 3000), "refused: depth"),
        ("'" + String(repeating: "a", count: 20_000) + "'", "refused: size"),
        ("[" + String(repeating: "1,", count: 6000) + "]", "refused: size"),
    ])
    func `text that is too long or too deep is refused in every form`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test func `text at the minimum limits of the definition is accepted`() {
        func row(_ count: Int, _ part: String, _ separator: String) -> String {
            Array(repeating: part, count: count).joined(separator: separator)
        }
        #expect(Trial.unchecked(row(32, "false", "||")) == "false")
        #expect(Trial.unchecked(row(1000, "true", "&&")) == "true")
        #expect(Trial.unchecked(row(32, "1", "+")) == "32")
        #expect(Trial.unchecked("size([" + row(32, "1", ",") + "])") == "32")
        #expect(Trial.unchecked(String(repeating: "false ? 1 : ", count: 32) + "2") == "2")
        #expect(Trial.unchecked(String(repeating: "(", count: 32) + "1" + String(repeating: ")", count: 32)) == "1")
        #expect(Trial.unchecked(String(repeating: "dyn(", count: 32) + "1" + String(repeating: ")", count: 32)) == "1")
        #expect(Trial.unchecked(String(repeating: "[", count: 32) + String(repeating: "]", count: 32) + " == []") == "false")
    }

    @Test func `a problem is shown with a caret under its place`() throws {
        let refusal = #expect(throws: ExpressionRefusal.self) {
            try ExpressionProgram("price > 100 &&\n\tprise < 5", in: ExpressionEnvironment([.init("price", .double)]))
        }
        #expect(refusal?.description == "2:2: there is no variable prise; did you mean price?\n    \tprise < 5\n    \t^")
    }
}

extension String {
    fileprivate func components(_ separator: Character) -> [String] {
        split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}
