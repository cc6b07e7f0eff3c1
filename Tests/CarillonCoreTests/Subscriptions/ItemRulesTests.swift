import CarillonBasics
import CarillonExpression
import CarillonWire
import TestSupport
import Testing

@testable import CarillonCore

struct ItemRulesTests {
    @Test(arguments: [
        ("a", "a", true), ("a", "ab", false), ("ab", "a", false), ("*", "anything", true), ("a*", "a", true),
        ("a*", "abc", true),
        ("*c", "abc", true), ("*c", "abcd", false), ("a*c", "abbc", true), ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXcYb", false),
        ("**", "x", true), ("a**b", "ab", true), ("stock.*", "stock", false), ("*.price", "a.b.price", true),
        ("*a*", "bbb", false),
    ])
    func `a star matches any text`(pattern: String, name: String, fits: Bool) {
        #expect(ItemRules.fits(Array(pattern.utf8), Array(name.utf8)) == fits)
    }

    @Test func `stars that are tried again and again take no more than the product of both lengths`() {
        let pattern = String(repeating: "*a", count: 60) + "b"
        let taken = ThreadTime.measure {
            for _ in 0..<100 {
                #expect(!ItemRules.fits(Array(pattern.utf8), Array(repeating: UInt8(ascii: "a"), count: 128)))
            }
        }
        #expect(taken < .seconds(20))
    }

    @Test func `the rule of a field has a type, and of a text the most bytes`() throws {
        func rules(_ fields: String) throws -> ItemRules {
            let text = #"{"items":[{"pattern":"a","fields":\#(fields)}]}"#
            return try ItemRules(try #require(JSONValue(parsing: Array(text.utf8))))
        }
        let read = try rules(#"{"s":"string","l":{"type":"string","maxBytes":200},"o":{"type":"int"}}"#)
        let expected: [String: ItemRules.Field] = [
            "s": .init(.string), "l": .init(.string, maxBytes: 200), "o": .init(.int),
        ]
        #expect(read.rules.first?.fields == expected)
        #expect(try ItemRules(read.json) == read)
        _ = try rules(#"{"l":{"type":"string","maxBytes":4096}}"#)
        for bad in [
            #"{"l":{"type":"string","maxBytes":0}}"#, #"{"l":{"type":"string","maxBytes":4097}}"#,
            #"{"l":{"type":"int","maxBytes":2}}"#, #"{"l":{"maxBytes":2}}"#, #"{"l":{"type":"string","other":2}}"#,
            #"{"l":{"type":"text"}}"#, #"{"l":7}"#, #"{"l":{"type":"string","maxBytes":"2"}}"#, #"{"":"int"}"#,
        ] {
            let refusal = #expect(throws: Refusal.self, "\(bad)") { try rules(bad) }
            #expect(refusal?.code == .itemRulesInvalid)
        }
    }

    @Test func `a name has 1 to 128 bytes, none of them for controlling`() {
        #expect(ItemName(String(repeating: "n", count: 128)) != nil && ItemName("a b/ä") != nil)
        for name in ["", String(repeating: "n", count: 129), String(repeating: "ä", count: 65), "a\u{7F}", "a\n"] {
            #expect(ItemName(name) == nil)
        }
    }

    @Test func `the first rule that fits counts, and where none does an item is closed`() throws {
        let text =
            #"{"items":[{"pattern":"a.secret"},{"pattern":"a.*","open":true,"mode":"distinct","fields":{"x":"int"}}]}"#
        let rules = try ItemRules(try #require(JSONValue(parsing: Array(text.utf8))))
        func rule(_ name: String) throws -> ItemRules.Rule { rules.rule(for: try #require(ItemName(name))) }
        #expect(try !rule("a.secret").isOpen && rule("a.secret").mode == .merge)
        #expect(try rule("a.b").isOpen && rule("a.b").mode == .distinct && rule("a.b").fields == ["x": .init(.int)])
        #expect(try !rule("b").isOpen)
        #expect(try ItemRules(rules.json) == rules)
    }

    @Test func `the places of eight publishers are remembered, those that wrote last`() {
        var item = StoredItem(state: ItemState(.merge))
        for number in 0..<9 { item.note(.init(source: "s\(number)", sequence: 5)) }
        item.note(.init(source: "s1", sequence: 6))
        item.note(.init(source: "new", sequence: 1))
        #expect(item.places.count == ItemLimits.sources)
        #expect(item.has(.init(source: "s1", sequence: 6)) && !item.has(.init(source: "s1", sequence: 7)))
        #expect(!item.has(.init(source: "s2", sequence: 1)), "it wrote least recently")
    }

    @Test func `values and pairs come back from their bytes, and nothing else does`() throws {
        let list = [
            ItemValue(.null), ItemValue(.bool(true)), ItemValue(.bool(false)), ItemValue(.int(.min), digits: "-9"),
            ItemValue(.uint(.max)), ItemValue(.double(-0.0), digits: "-0.0"), ItemValue(.string("é😀")),
            ItemValue(.bytes([0, 255])),
            ItemValue(.list([.list([.int(1)]), .string("")])), ItemValue(.duration(.init(nanoseconds: -5))),
        ]
        let fields = Dictionary(uniqueKeysWithValues: list.enumerated().map { ("f\($0.offset)", $0.element) })
        let bytes = try #require(ValueCoding.encode(fields))
        let read = try #require(ValueCoding.fields(bytes))
        #expect(read.count == fields.count)
        for (name, value) in fields { #expect(read[name]?.isSame(as: value) == true, "\(name)") }
        for length in 0..<bytes.count { _ = ValueCoding.fields(Array(bytes.prefix(length))) }
        for place in bytes.indices {
            var broken = bytes
            broken[place] ^= 0xFF
            _ = ValueCoding.fields(broken)
        }
        #expect(ValueCoding.values([8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]) == nil, "a list of very many")
        #expect(ValueCoding.encode([.type(.int)]) == nil)
        #expect(ValueCoding.encode(["a": ItemValue(.type(.int))]) == nil)
        #expect(ValueCoding.values(ValueCoding.encode(["", "é"]))?.map { ItemValue($0).text } == ["", "é"])
        let pairs: [(Int64, Int64)] = [(1, 1), (5, 2), (3, .max), (.max, .min)]
        let again = try #require(ValueCoding.pairs(ValueCoding.encode(pairs)))
        #expect(again.map(\.0) == pairs.map(\.0) && again.map(\.1) == pairs.map(\.1))
    }
}
