import TestSupport
import Testing

@testable import CarillonExpression

struct PatternTests {
    @Test func `each part of a set that is searched costs`() throws {
        func cost(_ pattern: String) throws -> Int { try Pattern(pattern, limit: 1000).cost(of: 100) }
        #expect(try cost("[a]") < cost("[\\D\\S\\W]"))
        #expect(try cost("[a]") < cost("[acegikmoqsuwy]"))
        #expect(try cost("[abcdefgh]") == cost("[a-h]"))
    }

    @Test(
        arguments: [
            ("abc", "xabcx", true), ("^abc$", "abc", true), ("^abc$", "xabc", false), ("a.c", "a\nc", false),
            ("(?s)a.c", "a\nc", true), ("a|b", "b", true), ("a*", "", true), ("^a+$", "", false),
            ("^a?b$", "b", true), ("^a{2,3}$", "a", false), ("^a{2,3}$", "aaa", true), ("^a{2,3}$", "aaaa", false),
            ("^a{2}$", "aa", true), ("^a{2,}$", "aaaaa", true), ("^a{2,}$", "a", false),
            ("^a{0}$", "", true), ("a{,2}", "a{,2}", true), ("a{", "a{", true), ("a{x}", "a{x}", true),
            ("[a-c]+", "zzb", true), ("^[^a-c]+$", "xyz", true), ("^[^a-c]+$", "xaz", false),
            ("^[]a]+$", "]a", true), ("^[a-]+$", "-a", true), ("^[\\d-x]+$", "1-x", true), (#"^\d+$"#, "123", true),
            (#"^\d+$"#, "١", false), (#"^\D+$"#, "abc", true), (#"^\w+$"#, "a_9", true),
            (#"^\w+$"#, "é", false), (#"\W"#, "é", true), (#"^\s$"#, "\u{b}", false), (#"^\s$"#, "\t", true),
            (#"^\S$"#, "\u{b}", true), (#"\bfoo\b"#, "a foo b", true), (#"\bfoo\b"#, "afoo", false),
            (#"\Bfoo"#, "afoo", true), (#"\Aab\z"#, "ab", true), (#"\Aab\z"#, "ab\n", false), ("^b$", "a\nb\nc", false),
            ("(?m)^b$", "a\nb\nc", true), ("(?i)straße", "STRAßE", true), ("(?i)k", "\u{212a}", true),
            ("(?i)[k]", "\u{212a}", true), ("(?i)s", "ſ", true), ("(?i)[^k]", "K", false), (#"(?i)^\W$"#, "\u{212a}", false),
            (#"(?i)^\w$"#, "\u{212a}", true), (#"(?i)^[^\W]$"#, "\u{212a}", true), ("a(?i)b", "aB", true),
            ("a(?i)b", "AB", false), ("a(?i:b)c", "aBC", false), ("(?i)a(?-i)b", "Ab", true), ("(?i)a(?-i)b", "AB", false),
            (#"^\pL+$"#, "éß", true), (#"^\p{Lu}$"#, "É", true), (#"^\p{Lu}$"#, "é", false), (#"^\P{Lu}$"#, "é", true),
            (#"^\p{^Lu}$"#, "É", false), (#"^[\pN\pL]+$"#, "a1", true), (#"^[^\pN]+$"#, "a", true),
            ("^[[:alpha:]]+$", "abc", true),
            ("^[[:^alpha:]]+$", "123", true), ("^[[:digit:]_]+$", "1_2", true), (#"\Qa.b\E"#, "a.b", true),
            (#"\Qa.b\E"#, "axb", false), (#"^\Qab\E+$"#, "abb", true), (#"\x41\x{1F600}"#, "A😀", true),
            (#"\101\n"#, "A\n", true), (#"\."#, "a", false),
            ("(?P<n>a)(?<m>b)", "ab", true), ("(a|b)*c", "ababc", true), ("(a*)*b", "aaaa", false), ("(a|)+$", "b", true),
            ("^(?:ab)+$", "abab", true), ("a**", "a", nil), ("*a", "a", nil), ("a{2}{3}", "a", nil), ("^*", "a", true),
            ("(?=a)", "a", nil), ("(?!a)", "a", nil), ("(?<=a)b", "ab", nil), ("(?>a)", "a", nil), ("(?#a)", "a", nil),
            ("a++", "a", nil), (#"(a)\1"#, "aa", nil), (#"\Z"#, "", nil), (#"\G"#, "", nil), (#"\C"#, "a", nil),
            ("a{1001}", "a", nil), ("a{99999999999999999999}", "a", nil), ("a{3,2}", "a", nil), ("(){1001}", "a", nil),
            ("[" + String(repeating: "ab", count: 600) + "]", "b", true), ("^[a-zc-d]$", "m", true),
            ("^[x-zc-da-m]+$", "bey", true), ("^[c-da-ab]$", "e", false),
            ("[" + String(repeating: "\\D\\S", count: 600) + "]", "b", true),
            (String(repeating: "(", count: 9000) + String(repeating: ")", count: 9000), "a", nil),
            ("(", "", nil), (")", "", nil), ("[a", "", nil), ("[b-a]", "", nil), ("[[:foo:]]", "", nil),
            (#"\p{Foo}"#, "", nil), (#"\pX"#, "", nil), (#"\x{110000}"#, "", nil), (#"\xg"#, "", nil), (#"\"#, "", nil),
            ("(?x)a", "a", nil), ("(?)", "a", nil), ("a{500}{3}", "a", nil),
            ("(a{40}){40}", "a", nil), ("(?i", "a", nil), ("(?P<>a)", "a", nil), ("((a{0}){1000}){1000}", "a", nil),
            ("é", "é", true), ("é", "e\u{301}", false), ("^.$", "e\u{301}", false), ("^.$", "😀", true),
            ("a??b", "b", true), ("a+?b", "aab", true), ("x*", "y", true), (#"[\]]"#, "]", true), (#"^[a\-z]+$"#, "-", true),
            (#"\_"#, "_", nil), (#"\-"#, "-", true), (#"[\b]"#, "b", nil), ("$^", "", true), ("a$b", "ab", false),
            ("||", "", true),
        ] as [(String, String, Bool?)])
    func `patterns are those of RE2, and other ones are refused`(pattern: String, text: String, matches: Bool?) {
        let expected = matches.map(String.init) ?? "error: invalid_pattern"
        #expect(Trial.unchecked("t.matches(p)", ["t": .string(text), "p": .string(pattern)]) == expected)
    }

    @Test func `a pattern that cannot be read is refused with the place in it`() throws {
        let environment = ExpressionEnvironment([.init("s", .string)])
        let refusal = #expect(throws: ExpressionRefusal.self) { try ExpressionProgram("s.matches('ab(c')", in: environment) }
        #expect(refusal?.problems.first?.message.contains("at 2") == true)
        #expect(refusal?.problems.first?.position.offset == 10)
    }

    @Test func `time is linear in the text, for any pattern`() {
        var limits = ExpressionLimits()
        limits.cost = 1 << 30
        func time(_ count: Int) -> Duration {
            let text = ExpressionValue.string(String(repeating: "a", count: count))
            return ThreadTime.measure {
                #expect(Trial.unchecked("t.matches('^(a|a)*(a*)*(a?){20}a{20}b$')", ["t": text], limits: limits) == "false")
            }
        }
        // A backtracking engine would take longer than there is time.
        _ = time(100)
        // Other tests make either slower, but not each time.
        var fastest = (short: Duration.seconds(999), long: Duration.seconds(999))
        for _ in 0..<3 { fastest = (min(fastest.short, time(2000)), min(fastest.long, time(20_000))) }
        #expect(fastest.long < fastest.short * 40, "\(fastest)")
    }
}
