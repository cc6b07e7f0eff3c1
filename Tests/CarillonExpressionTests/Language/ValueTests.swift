import CarillonExpression
import Testing

/// The values of expressions, by the sections of the language's definition.
struct ValueTests {
    @Test(arguments: [
        ("6 - 2 - 3", "1"), ("2 + 5 * 4", "22"), ("-9 / 4", "-2"), ("-9 % 4", "-1"), ("9 % -4", "1"),
        ("5u - 8u", "error: overflow"), ("-9223372036854775808", "-9223372036854775808"),
        ("-(-9223372036854775808)", "error: overflow"), ("--9223372036854775808", "error: overflow"),
        ("-9223372036854775808 / -1", "error: overflow"), ("-9223372036854775808 % -1", "error: overflow"),
        ("9223372036854775807 + 1", "error: overflow"), ("-9223372036854775807 - 2", "error: overflow"),
        ("9223372036854775807 * 2", "error: overflow"), ("18446744073709551615u * 2u", "error: overflow"),
        ("18446744073709551615u + 1u", "error: overflow"), ("8 / 0", "error: division_by_zero"),
        ("8u % 0u", "error: division_by_zero"), ("8u / 0u", "error: division_by_zero"),
        ("8 % 0", "error: division_by_zero"), ("8.0 / 0.0 > 1e300", "true"), ("-8.0 / 0.0", #"double("-inf")"#),
        ("4 + 4u", "error: no_such_overload"), ("4 + 4.0", "error: no_such_overload"),
        ("7.5 % 2.0", "error: no_such_overload"), ("-(4u)", "error: no_such_overload"), ("!1", "error: no_such_overload"),
        ("!!true", "true"), ("- -3", "3"), ("-2.5", "-2.5"), ("1 - -1", "2"), ("7u / 2u", "3u"), ("7u % 4u", "3u"),
        ("1.5 + 2.25", "3.75"), ("'a' + 'b'", #""ab""#), ("b'a' + b'b'", #"b"ab""#), ("[1] + [2u]", "[1, 2u]"),
        ("null + null", "error: no_such_overload"), ("'a' - 'b'", "error: no_such_overload"),
    ])
    func `numbers are added, multiplied and divided, and overflow as errors`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("dyn(4) == 4.0", "true"), ("dyn(4u) == 4", "true"), ("4 == 4u", "true"), ("dyn('4') == 4", "false"),
        ("dyn(null) == 0", "false"), ("null == null", "true"), ("0.0/0.0 == 0.0/0.0", "false"),
        ("0.0/0.0 != 0.0/0.0", "true"), ("[0.0/0.0] == [0.0/0.0]", "false"), ("0.0 == -0.0", "true"),
        ("[4, 5] == [dyn(4.0), 5u]", "true"), ("[4] == [4, 5]", "false"), ("[4, 5] == [5, 4]", "false"),
        ("{'p': 1, 'q': 2} == {'q': 2, 'p': 1}", "true"), ("{'p': 1} == {'p': 2}", "false"),
        ("{'p': 1} == {'q': 1}", "false"),
        ("{'p': 1} == {'p': 1, 'q': 1}", "false"), ("{1: 'a'} == {1u: 'a'}", "true"),
        ("dyn(9007199254740993) == 9007199254740992.0", "true"), ("dyn(-1) == 18446744073709551615u", "false"),
        ("'\\u00e9' == 'e\\u0301'", "false"), ("b'a' == b'a'", "true"), ("b'a' == 'a'", "false"),
        ("type(1) == int", "true"), ("type([1]) == list", "true"), ("type([1]) == type(['a'])", "true"),
        ("duration('1s') == duration('1000ms')", "true"),
        ("timestamp('2024-01-01T00:00:00Z') == timestamp('2024-01-01T01:00:00+01:00')", "true"), ("true == true", "true"),
        ("[[1]] == [[1]]", "true"), ("[[1]] == [[2]]", "false"), ("1 != 2", "true"),
    ])
    func `values are equal by value, and unlike types are unequal`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("'Z' < 'a'", "true"), ("'\\ufb01' < '\\U00010000'", "true"), ("b'\\x00' < b'\\x01'", "true"),
        ("b'a' < b'ab'", "true"), ("'a' < 'ab'", "true"), ("'ab' < 'a'", "false"), ("false < true", "true"),
        ("true < false", "false"), ("true <= true", "true"), ("dyn(-3) < 3u", "true"), ("dyn(3u) > -3", "true"),
        ("dyn(18446744073709551615u) > 9.0", "true"), ("dyn(1.5) < 2", "true"), ("dyn(2) < 1.5", "false"),
        ("dyn(1u) < 1.5", "true"), ("1 <= 1", "true"), ("1 >= 1", "true"), ("1 < 1", "false"), ("1 > 1", "false"),
        ("2 > 1", "true"), ("2 >= 3", "false"), ("1.0 <= 0.5", "false"), ("0.0/0.0 < 1.0", "false"),
        ("0.0/0.0 >= 1.0", "false"), ("0.0/0.0 > 1.0", "false"), ("0.0/0.0 <= 1.0", "false"),
        ("duration('1s') < duration('2s')", "true"),
        ("timestamp('2024-01-01T00:00:00Z') < timestamp('2024-01-01T00:00:00.5Z')", "true"),
        ("'a' < 1", "error: no_such_overload"), ("[1] < [2]", "error: no_such_overload"),
        ("null < null", "error: no_such_overload"), ("dyn(-1) < 18446744073709551615u", "true"),
    ])
    func `order is that of numbers, of code points and of time`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("1 / 0 > 0 || true", "true"), ("true || 1 / 0 > 0", "true"), ("1 / 0 > 0 && false", "false"),
        ("1 / 0 > 0 && true", "error: division_by_zero"), ("1 / 0 > 0 || false", "error: division_by_zero"),
        ("false || p", "error: unbound_variable"), ("true || p", "true"), ("p || true", "true"), ("p && false", "false"),
        ("false ? 1 / 0 : 9", "9"), ("true ? 9 : 1 / 0", "9"), ("dyn(1) ? 2 : 3", "error: no_such_overload"),
        ("dyn('s') && false", "false"), ("dyn('s') && true", "error: no_such_overload"), ("false && dyn('s')", "false"),
        ("dyn('s') || true", "true"), ("1 / 0 > 0 ? 1 : 2", "error: division_by_zero"),
        ("!(1 / 0 > 0)", "error: division_by_zero"),
        ("true && true && false", "false"), ("false || false || true", "true"), ("true && 1 / 0 > 0 && false", "false"),
        ("true || false && false", "true"), ("!false && true", "true"),
        ("true ? 5 : false ? 6 : 7", "5"), ("false ? 5 : false ? 6 : 7", "7"), ("unknown(1) || true", "true"),
    ])
    func `and, or and choice ignore operands that do not decide`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("[7, 8][0]", "7"), ("[7, 8][2]", "error: index_out_of_range"), ("[7, 8][-1]", "error: index_out_of_range"),
        ("[7, 8][dyn(1.0)]", "8"), ("[7, 8][dyn(1u)]", "8"), ("[7][dyn(0.5)]", "error: no_such_overload"),
        ("[7]['a']", "error: no_such_overload"), ("[7][18446744073709551615u]", "error: index_out_of_range"),
        ("dyn(5.0) in [4, 5]", "true"), ("6 in [4, 5]", "false"), ("'x' in {'x': null}", "true"),
        ("'y' in {'x': null}", "false"),
        ("1 in {1u: 2}", "true"), ("1.5 in {1: 2}", "false"), ("1 in 2", "error: no_such_overload"), ("1 in []", "false"),
        ("null in {}", "false"), ("[] in {1: 2}", "false"), ("{'b': 1, 'a': 2}.map(k, k)", #"["b", "a"]"#),
        ("{5: 'v'}[dyn(5.0)]", #""v""#), ("{5u: 'v'}[5]", #""v""#), ("{'k': 1}['k']", "1"), ("{'k': 1}.k", "1"),
        ("{'k': 1}['j']", "error: no_such_key"), ("{'k': 1}.j", "error: no_such_key"),
        ("{'k': 1, 'k': 2}", "error: repeated_key"), ("{1: 1, 1u: 2}", "error: repeated_key"),
        ("{1.5: 'x'}", "error: invalid_key"),
        ("{null: 1}", "error: invalid_key"), ("{[1]: 1}", "error: invalid_key"), ("{true: 1}[true]", "1"),
        ("1.0.foo", "error: no_such_overload"), ("5[0]", "error: no_such_overload"), ("{}", "{}"), ("[]", "[]"),
        ("{'a': {'b': [1, {'c': 7}]}}.a.b[1].c", "7"),
        ("{1:1,2:2,3:3,4:4,5:5,6:6,7:7,8:8,9:9,10:10}[10]", "10"),
        ("{1:1,2:2,3:3,4:4,5:5,6:6,7:7,8:8,9:9,1u:10}", "error: repeated_key"),
        ("11 in {1:1,2:2,3:3,4:4,5:5,6:6,7:7,8:8,9:9,10:10}", "false"), ("{'a b': 1}.`a b`", "1"),
    ])
    func `lists and maps return their elements`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("[].all(i, false)", "true"), ("[].exists(i, true)", "false"), ("[0, 4].exists(i, 8 / i == 2)", "true"),
        ("[0, 4].all(i, 8 / i == 3)", "false"), ("[0, 2].all(i, 8 / i == 4)", "error: division_by_zero"),
        ("[0].exists(i, 8 / i == 2)", "error: division_by_zero"),
        ("[0, 2].exists_one(i, 8 / i == 4)", "error: division_by_zero"), ("[3, 6, 3].exists_one(i, i == 3)", "false"),
        ("[3, 6].exists_one(i, i == 3)", "true"), ("[1, 2, 3].exists(i, v, i > -1 && v > 0)", "true"),
        ("[1, 2].all(i, v, i < v)", "true"), ("[].all(i, v, false)", "true"),
        ("[2, 2].existsOne(i, v, i == 1 && v == 2)", "true"),
        ("{'a': 1, 'b': 2}.exists(k, v, k == 'b' && v == 2)", "true"), ("{'a': 1}.all(k, v, v == 2)", "false"),
        ("[0, 2].exists(i, v, 8 / v == 4)", "true"), ("[0, 2].exists_one(i, v, 8 / v == 4)", "error: division_by_zero"),
        ("[3, 4].transformList(i, v, i * v)", "[0, 4]"), ("[3, 4, 5].transformList(i, v, v > 3, v + i)", "[5, 7]"),
        ("{'a': 1, 'b': 2}.transformList(k, v, v > 1, k)", #"["b"]"#), ("[7, 8].transformMap(i, v, v + i)", "{0: 7, 1: 9}"),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, k + '!')", #"{"b": "b!"}"#),
        ("{'a': 1}.transformMap(k, v, 1 / 0)", "error: division_by_zero"),
        ("5.transformList(i, v, v)", "error: no_such_overload"),
        ("[1].transformList(i, i, i)", "refused: syntax"), ("[1].transformList(1, i, i)", "refused: syntax"),
        ("[1].transformList(i, i)", "error: no_such_overload"), ("[[1, 2]].all(i, v, v.all(j, w, w > i + j))", "true"),
        ("cel.bind(t, true, t && t)", "true"), ("cel.bind(x, 2, cel.bind(y, x * x, y + x))", "6"),
        ("cel.bind(x, 1, cel.bind(x, x + 1, x)) + cel.bind(x, 5, x)", "7"),
        ("cel.bind(x, 1 / 0, true)", "error: division_by_zero"),
        ("cel.bind(1, 2, 3)", "refused: syntax"), ("cel.bind(x, 1)", "error: no_such_overload"),
        ("[1, 2].map(a, cel.bind(b, a * 10, b + a))", "[11, 22]"), ("[3, 6].existsOne(i, i == 9)", "false"),
        ("[3, 6].map(i, i > 4, i + 1)", "[7]"), ("[3, 6].map(i, i + 1)", "[4, 7]"), ("{'p': 1}.filter(k, true)", #"["p"]"#),
        ("[1, 2, 3].filter(i, i % 2 == 1)", "[1, 3]"), ("[1].filter(i, 1)", "error: no_such_overload"),
        ("[1].all(i, 'x')", "error: no_such_overload"), ("[1, 2].exists(i, i == 2 ? true : 'x')", "true"),
        ("dyn(5).map(i, i)", "error: no_such_overload"), ("'abc'.all(c, true)", "error: no_such_overload"),
        ("(1 / 0 > 0 ? [1] : [2]).all(i, true)", "error: division_by_zero"),
        ("[1].map(i, 1 / 0)", "error: division_by_zero"),
        ("[[1, 2], [3]].map(i, i.map(j, j * 2))", "[[2, 4], [6]]"), ("[1, 2].all(i, [3, 4].exists(j, j > i))", "true"),
        ("[1].map(i, [2].map(i, i))", "[[2]]"), ("[1, 2].map(i, [5].map(j, j)[0] + i)", "[6, 7]"),
        ("{'a': 1, 'b': 2}.exists(k, k == 'b')", "true"), ("[1, 2].map(v, .v)", "[9, 9]"),
        ("[[1]].exists(v, v[0] == 1)", "true"),
        ("[{'a': 1}].map(v, v.a)", "[1]"),
    ])
    func `macros go over lists and keys`(source: String, value: String) {
        #expect(Trial.unchecked(source, ["v": .int(9)]) == value)
    }

    @Test(arguments: [
        ("has(m.x)", "true"), ("has(m.z)", "false"), ("has(m.x.y)", "error: no_such_overload"),
        ("has(m.z.y)", "error: no_such_key"),
        ("has(m.in.here)", "refused: syntax"), ("has({'a': 1}.a)", "true"), ("has({'a': 1}.b)", "false"),
        ("has(n.x)", "error: unbound_variable"), ("has(n.x) || true", "true"),
    ])
    func `presence requires a key`(source: String, value: String) {
        #expect(Trial.unchecked(source, ["m": .map(["x": .null])]) == value)
    }

    @Test func `a name refers to its longest bound prefix`() {
        let variables: [String: ExpressionValue] = [
            "p.q": .map(["r": .int(1)]), "p": .map(["q": .map(["r": .int(2), "s": .int(3)])]), "a.b.c": .int(4),
            "c": .int(5),
        ]
        #expect(Trial.unchecked("p.q.r", variables) == "1")
        #expect(Trial.unchecked("p.q.s", variables) == "error: no_such_key")
        #expect(Trial.unchecked("c", variables, container: "a.b") == "4")
        #expect(Trial.unchecked(".c", variables, container: "a.b") == "5")
        #expect(Trial.unchecked("b.c", variables, container: "a.x") == "4")
        #expect(Trial.unchecked("[1].map(p, p.q.r)", variables) == "error: no_such_overload")
        #expect(Trial.unchecked("[1].map(p, .p.q.r)", variables) == "[1]")
        #expect(Trial.unchecked("size(size)", ["size": .string("abc")]) == "3")
    }
}
