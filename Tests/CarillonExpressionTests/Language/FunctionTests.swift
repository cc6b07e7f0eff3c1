import CarillonExpression
import Testing

struct FunctionTests {
    @Test(arguments: [
        ("size('')", "0"), ("size('\\u00e9')", "1"), ("'e\\u0301'.size()", "2"), ("size('\\U0001F600')", "1"),
        ("size('\\U0001F1E9\\U0001F1EA')", "2"), ("size('\\r\\n')", "2"), ("size(b'\\303\\251')", "2"), ("size(b'é')", "2"),
        ("size([1, 2])", "2"), ("{'a': 1}.size()", "1"), ("size(1)", "error: no_such_overload"),
        ("'abc'.contains('bc')", "true"), ("'abc'.contains('cb')", "false"), ("''.contains('')", "true"),
        ("'aab'.contains('ab')", "true"), ("'a'.contains('aa')", "false"), ("'e\\u0301'.contains('e')", "true"),
        ("'ab'.endsWith('')", "true"), ("'ab'.endsWith('b')", "true"), ("'ab'.endsWith('ab')", "true"),
        ("'b'.endsWith('ab')", "false"), ("'ab'.startsWith('a')", "true"), ("'ab'.startsWith('b')", "false"),
        ("'a'.startsWith('ab')", "false"), ("'a'.startsWith(1)", "error: no_such_overload"),
        ("contains('a', 'a')", "error: no_such_overload"), ("'subject'.matches('bj')", "true"),
        ("'subject'.matches('^bj$')", "false"), ("matches('abc', 'a.c')", "true"),
        ("'a'.matches('(?=a)')", "error: invalid_pattern"), ("'a'.matches('a' + '{1001}')", "error: invalid_pattern"),
        ("'a'.matches('[' + 'ab]')", "true"), ("1.matches('a')", "error: no_such_overload"),
        ("'a'.matches(1)", "error: no_such_overload"),
        ("type(4u) == uint", "true"), ("type(type(4)) == type", "true"), ("type(null) == null_type", "true"),
        ("type(dyn(1.0))", "double"), ("type(duration('1s')) == google.protobuf.Duration", "true"), ("dyn(1) + dyn(1)", "2"),
    ])
    func `texts, sizes and types`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("int(-3.9)", "-3"), ("int(9223372036854775808.0)", "error: overflow"),
        ("int(-9223372036854775808.0)", "error: overflow"),
        ("int(1e99)", "error: overflow"), ("int(0.0/0.0)", "error: overflow"),
        ("int(18446744073709551615u)", "error: overflow"),
        ("int(9223372036854775807u)", "9223372036854775807"), ("int('-12')", "-12"), ("int('+12')", "12"),
        ("int(' 3')", "error: invalid_text"), ("int('')", "error: invalid_text"), ("int('3.0')", "error: invalid_text"),
        ("int('0x3')", "error: invalid_text"), ("int('-')", "error: invalid_text"),
        ("int('9223372036854775808')", "error: invalid_text"),
        ("int(timestamp('1969-12-31T23:59:59.5Z'))", "-1"), ("int(null)", "error: no_such_overload"),
        ("int([1])", "error: no_such_overload"), ("int(true)", "error: no_such_overload"),
        ("uint(-1)", "error: overflow"), ("uint(18446744073709551616.0)", "error: overflow"),
        ("uint(-0.5)", "error: overflow"),
        ("uint(3.9)", "3u"), ("uint('7')", "7u"), ("uint('-1')", "error: invalid_text"),
        ("uint('+1')", "error: invalid_text"),
        ("double('1e3')", "1000.0"), ("double('inf')", #"double("inf")"#), ("double('-Infinity')", #"double("-inf")"#),
        ("double('x')", "error: invalid_text"), ("double('')", "error: invalid_text"),
        ("double('1e999')", "error: invalid_text"),
        ("double('.5')", "0.5"), ("double('--1')", "error: invalid_text"), ("double(' 1')", "error: invalid_text"),
        ("double(9007199254740993)", "9007199254740992.0"), ("double(1u)", "1.0"),
        ("bool('true')", "true"), ("bool('T')", "true"), ("bool('0')", "false"), ("bool('False')", "false"),
        ("bool('yes')", "error: invalid_text"),
        ("bool('tRUE')", "error: invalid_text"), ("bool(1)", "error: no_such_overload"), ("string(true)", #""true""#),
        ("string(-8)", #""-8""#), ("string(8u)", #""8""#), ("string(b'\\xc3')", "error: invalid_text"),
        ("string(b'\\xc3\\xa9')", #""é""#), ("bytes('é') == b'é'", "true"), ("bytes(1)", "error: no_such_overload"),
        ("string(null)", "error: no_such_overload"),
        ("string(1.0)", #""1""#), ("string(999999.0)", #""999999""#), ("string(1000000.0)", #""1e+06""#),
        ("string(123.456)", #""123.456""#),
        ("string(0.0001)", #""0.0001""#), ("string(0.00001)", #""1e-05""#), ("string(-0.0)", #""-0""#),
        ("string(1e300)", #""1e+300""#),
        ("string(-4.5e-3)", #""-0.0045""#), ("string(1234567.5)", #""1.2345675e+06""#), ("string(1.0/0.0)", #""+Inf""#),
        ("string(-1.0/0.0)", #""-Inf""#), ("string(0.0/0.0)", #""NaN""#), ("string(5e-324)", #""5e-324""#),
        ("string(100.0)", #""100""#),
    ])
    func `conversions report their failures`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("duration('2m') + duration('500ms') == duration('120.5s')", "true"), ("duration('3')", "error: invalid_text"),
        ("duration('3d')", "error: invalid_text"), ("duration('')", "error: invalid_text"),
        ("duration('0')", #"duration("0s")"#),
        ("duration('-')", "error: invalid_text"), ("duration('1h1h')", #"duration("7200s")"#),
        ("duration('.5s')", #"duration("0.5s")"#),
        ("duration('5.s')", #"duration("5s")"#), ("duration('.s')", "error: invalid_text"),
        ("duration('1 s')", "error: invalid_text"),
        ("duration('1.9999999999ns')", #"duration("0.000000001s")"#), ("duration('+1us')", #"duration("0.000001s")"#),
        ("duration('9223372036.854775807s')", #"duration("9223372036.854775807s")"#),
        ("duration('9223372037s')", "error: invalid_text"), ("duration('9223372036.854775808s')", "error: invalid_text"),
        ("duration('-9223372036.854775808s')", #"duration("-9223372036.854775808s")"#),
        ("duration('99999999999999999999h')", "error: invalid_text"),
        ("duration('9223372036s') + duration('1s')", "error: overflow"), ("string(duration('-2.5m'))", #""-150s""#),
        ("string(duration('90m'))", #""5400s""#), ("duration('95m').getHours()", "1"),
        ("duration('-95s').getMinutes()", "-1"),
        ("duration('95s').getSeconds()", "95"), ("duration('1.25s').getMilliseconds()", "250"),
        ("duration('-1.25s').getMilliseconds()", "-250"), ("duration('1s').getFullYear()", "error: no_such_overload"),
        ("duration('1s').getHours('UTC')", "error: no_such_overload"),
    ])
    func `durations`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("timestamp('2024-02-29T12:00:00Z')", #"timestamp("2024-02-29T12:00:00Z")"#),
        ("timestamp('2023-02-29T12:00:00Z')", "error: invalid_text"),
        ("timestamp('1900-02-29T00:00:00Z')", "error: invalid_text"),
        ("timestamp('2000-02-29T00:00:00Z').getDayOfYear()", "59"),
        ("timestamp('2024-01-01T24:00:00Z')", "error: invalid_text"),
        ("timestamp('2024-01-01T00:60:00Z')", "error: invalid_text"),
        ("timestamp('2024-01-01T00:00:60Z')", "error: invalid_text"),
        ("timestamp('2024-13-01T00:00:00Z')", "error: invalid_text"),
        ("timestamp('2024-01-01 00:00:00Z')", "error: invalid_text"),
        ("timestamp('2024-01-01T00:00:00')", "error: invalid_text"),
        ("timestamp('2024-01-01t00:00:00z')", "error: invalid_text"),
        ("timestamp('2024-01-01T00:00:00.Z')", "error: invalid_text"),
        ("timestamp('2024-01-01T00:00:00.1234567899Z')", #"timestamp("2024-01-01T00:00:00.123456789Z")"#),
        ("timestamp('2024-01-01T00:00:00+01')", "error: invalid_text"),
        ("timestamp('2024-01-01T00:00:00Zx')", "error: invalid_text"),
        ("timestamp('0001-01-01T00:00:00+01:00')", "error: invalid_text"),
        ("timestamp('9999-12-31T23:59:59-00:01')", "error: invalid_text"),
        ("timestamp('0001-01-01T00:00:00Z') - duration('1ns')", "error: overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "error: overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('999ms')", #"timestamp("9999-12-31T23:59:59.999Z")"#),
        ("timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')", "error: overflow"),
        ("timestamp('2024-01-01T00:00:01Z') - timestamp('2024-01-01T00:00:00.5Z')", #"duration("0.5s")"#),
        ("duration('1s') + timestamp('2024-01-01T00:00:00Z')", #"timestamp("2024-01-01T00:00:01Z")"#),
        ("timestamp('2024-01-01T00:00:00Z') - duration('500ms')", #"timestamp("2023-12-31T23:59:59.5Z")"#),
        ("timestamp(0)", #"timestamp("1970-01-01T00:00:00Z")"#), ("timestamp(253402300800)", "error: overflow"),
        ("string(timestamp('2024-01-01T01:00:00.50+01:00'))", #""2024-01-01T00:00:00.5Z""#),
        ("timestamp('2024-03-01T02:00:00Z').getDate('-03:00')", "29"),
        ("timestamp('2024-03-01T02:00:00Z').getMonth('-03:00')", "1"),
        ("timestamp('2024-03-01T02:00:00Z').getDayOfYear()", "60"),
        ("timestamp('2024-03-01T02:00:00Z').getDayOfWeek()", "5"),
        ("timestamp('2024-03-03T02:00:00Z').getDayOfWeek()", "0"), ("timestamp('1969-12-28T00:00:00Z').getDayOfWeek()", "0"),
        ("timestamp('2024-03-01T02:00:00Z').getDayOfMonth()", "0"),
        ("timestamp('2024-03-01T02:00:00Z').getFullYear()", "2024"),
        ("timestamp('2024-03-01T02:03:04.567Z').getHours()", "2"),
        ("timestamp('2024-03-01T02:03:04.567Z').getMinutes()", "3"),
        ("timestamp('2024-03-01T02:03:04.567Z').getSeconds()", "4"),
        ("timestamp('2024-03-01T02:03:04.567Z').getMilliseconds()", "567"),
        ("timestamp('2024-03-01T02:03:04Z').getMinutes('05:30')", "33"),
        ("timestamp('2024-03-01T02:03:04Z').getMinutes('-00:10')", "53"),
        ("timestamp('2024-03-01T02:00:00Z').getHours('Nowhere/City')", "error: unknown_zone"),
        ("timestamp('2024-03-01T02:00:00Z').getHours('+25:00')", "error: unknown_zone"),
        ("timestamp('2024-03-01T02:00:00Z').getHours('+02:60')", "error: unknown_zone"),
        ("timestamp('2024-01-10T02:00:00Z').getHours('Europe/Berlin')", "4"),
        ("timestamp('2024-01-10T02:00:00Z').getHours('UTC')", "2"),
        ("timestamp('2024-01-10T02:00:00Z').getHours(1)", "error: no_such_overload"),
        ("timestamp(timestamp(5)) == timestamp(5)", "true"),
    ])
    func `instants`(source: String, value: String) {
        #expect(Trial.unchecked(source) == value)
    }

    @Test(arguments: [
        ("crosses(1.0, 2.0, 1.5)", "true"), ("crosses(2, 1, 1.5)", "true"), ("crosses(1, 2, 2)", "true"),
        ("crosses(2, 1, 1)", "true"),
        ("crosses(2, 2, 2)", "false"),
        ("crosses(2, 3, 2)", "false"), ("crosses(1, 2, 3)", "false"), ("crosses(1, 'x', 3)", "error: no_such_overload"),
        ("percentChange(100, 125.0)", "25.0"), ("percentChange(-100.0, -50.0)", "50.0"),
        ("percentChange(0, 1)", "error: division_by_zero"),
        ("within({'latitude': 52.52, 'longitude': 13.405}, 52.52, 13.405, 1)", "true"),
        ("within({'latitude': 52.52, 'longitude': 13.405}, 48.137, 11.575, 500000)", "false"),
        ("within({'latitude': 52.52, 'longitude': 13.405}, 48.137, 11.575, 510000)", "true"),
        ("within({'latitude': 0, 'longitude': 179.9}, 0, -179.9, 25000)", "true"),
        ("within({'latitude': double('NaN'), 'longitude': 1}, 1, 1, 99999999)", "false"),
        ("within({'latitude': 52.52}, 48.137, 11.575, 510000)", "error: no_such_key"),
        ("within(1, 2, 3, 4)", "error: no_such_overload"),
        ("version('1.10') > version('1.9.5')", "true"), ("version('1.0') == version('1.0.0+build')", "true"),
        ("version('1.0.0-alpha') < version('1.0.0')", "true"), ("version('1.0.0-alpha') < version('1.0.0-alpha.1')", "true"),
        ("version('1.0.0-alpha.1') < version('1.0.0-alpha.beta')", "true"),
        ("version('1.0.0-beta.2') < version('1.0.0-beta.11')", "true"),
        ("version('1.0.0-rc.1') > version('1.0.0-beta.11')", "true"), ("version('01.0') == version('1')", "true"),
        ("version('1.x')", "error: invalid_text"),
        ("version('')", "error: invalid_text"), ("version('1.2.3.4.5')", "error: invalid_text"),
        ("version('1.0-')", "error: invalid_text"),
    ])
    func `extensions, once switched on`(source: String, value: String) {
        #expect(Trial.unchecked(source, extensions: Set(ExpressionExtension.allCases)) == value)
        #expect(Trial.unchecked(source) == "error: no_such_overload")
    }
}
