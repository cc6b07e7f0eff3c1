import CarillonCore
import CarillonExpression
import Testing

/// The values of an item that conditions use, from update to update.
struct ItemConditionsTests {
    private let conditions = ItemConditions { name, _ in name == "Europe/Berlin" ? 3600 : nil }
    private let fields: [String: ExpressionType] = [
        "price": .double, "name": .dynamic, "item": .string, "previous": .double,
    ]

    private func holds(_ source: String, _ state: ItemState) throws -> Bool? {
        guard let bindings = conditions.bindings("stocks.ACME", state) else { return nil }
        return try? conditions.condition(source, over: fields).holds(bindings)
    }

    private func at(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: 1_700_000_000_000 + 1000 * seconds) }

    @Test func `fields keep their values in an item that merges, and not in one that is distinct`() throws {
        for (mode, isKept) in [(ItemState.Mode.merge, true), (.distinct, false)] {
            var state = ItemState(mode)
            #expect(try holds("price > 1.0", state) == nil, "there was no update")
            state.apply(.init(["price": ItemValue(.double(2)), "name": ItemValue(.string("a"))], at: at(0)))
            #expect(try holds("price == 2.0 && fields.price == 2.0 && name == 'a'", state) == true)
            #expect(try holds("previous.price > 0.0", state) == nil, "there was nothing before")
            state.apply(.init(["price": ItemValue(.double(3))], at: at(1)))
            #expect(try holds("has(fields.name)", state) == isKept)
            #expect(try holds("name == 'a'", state) == (isKept ? true : nil))
            #expect(try holds("previous.price == 2.0 && price > previous.price && previous.name == 'a'", state) == true)
            state.apply(.init(["price": ItemValue(.null)], at: at(2)))
            #expect(try holds("fields.price == null && previous.price == 3.0", state) == true)
            #expect(try holds("has(previous.name)", state) == isKept)
            // The state as it is read from the disk.
            let stored = ItemState(mode, fields: state.fields, previous: state.previous, updatedAt: state.updatedAt)
            #expect(try holds("fields.price == null && previous.price == 3.0", stored) == true)
        }
    }

    @Test func `a condition can cost up to its limit, and no more`() throws {
        let source = "name == 'abc' && price > 1.0"
        let cost = try conditions.expression(source, over: fields).cost.lowerBound
        _ = try conditions.condition(source, over: fields, cost: cost)
        let refusal = #expect(throws: ExpressionRefusal.self) {
            try conditions.condition(source, over: fields, cost: cost - 1)
        }
        #expect(refusal?.problems.map(\.code) == [.cost])
    }

    @Test func `the item and the time of the update have names of their own`() throws {
        var state = ItemState(.merge)
        state.apply(.init(["item": ItemValue(.string("field")), "price": ItemValue(.double(1))], at: at(0)))
        #expect(try holds("item == 'stocks.ACME' && fields.item == 'field'", state) == true)
        #expect(try holds("update.time == timestamp('2023-11-14T22:13:20Z')", state) == true)
        #expect(try holds("update.time.getHours('Europe/Berlin') == 23", state) == true)
        state.apply(.init([:], at: Timestamp(milliseconds: -1)))
        #expect(try holds("update.time == timestamp('1969-12-31T23:59:59.999Z')", state) == true)
    }

    @Test(arguments: [
        ("prise > 1.0", "did you mean price?"), ("price > ", "expected"), ("price + 1.0", "bool"),
        ("price > 'a'", "does not take"),
        ("now() > update.time", "no function"), ("price.matches('(')", "there is no"), ("size(fields.tags", "expected"),
    ])
    func `a text that is not a condition on these fields is refused with the reason`(source: String, word: String) {
        let refusal = #expect(throws: ExpressionRefusal.self) { try conditions.condition(source, over: fields) }
        #expect(refusal?.problems.contains { $0.message.contains(word) } == true, "\(refusal?.description ?? "")")
    }

    @Test func `a condition that costs more than any may is refused`() throws {
        var limits = ExpressionLimits()
        limits.cost = 7
        let strict = ItemConditions(limits: limits) { _, _ in nil }
        #expect(throws: ExpressionRefusal.self) {
            try strict.condition("price + price + price + price > 1.0", over: fields)
        }
        let accepted = try strict.condition("name.matches('a{100}')", over: fields)
        var state = ItemState(.merge)
        state.apply(.init(["name": ItemValue(.string("aaaaaaaaaa"))], at: at(0)))
        let bindings = try #require(strict.bindings("i", state))
        let error = #expect(throws: ExpressionError.self) { try accepted.holds(bindings) }
        #expect(error?.code == .budget)
    }
}
