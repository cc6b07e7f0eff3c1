import CarillonBasics
import CarillonExpression
import CarillonWire
import Testing

@testable import CarillonCore

/// The cost limits of conditions on texts before and during their evaluation.
struct ConditionCostTests {
    private static let limits: ExpressionLimits = {
        var limits = ExpressionLimits()
        limits.cost = ItemRules.mostCost
        return limits
    }()

    private let conditions = ItemConditions(limits: Self.limits) { _, _ in nil }
    private static let onTexts = [
        "name.matches('a.*b')", "name.contains('x') || name.contains('y') || name.contains('z')",
        "headline != previous.headline",
    ]

    private func most(
        _ source: String, _ type: ExpressionType = .dynamic, maxBytes: Int? = nil
    ) throws -> Int {
        let limits = maxBytes.map { ["name": $0, "headline": $0] } ?? [:]
        return try conditions.expression(source, over: ["name": type, "headline": type], maxBytes: limits).cost.upperBound
    }

    @Test(arguments: onTexts, [ExpressionType.string, .dynamic])
    func `a condition is accepted when it can cost less than it may`(source: String, type: ExpressionType) throws {
        _ = try conditions.condition(
            source, over: ["name": type, "headline": type], cost: ItemRules.standardCost)
    }

    @Test func `a condition that costs more in any case is refused`() throws {
        let source = "price + price + price + price > 1.0"
        _ = try conditions.condition(source, over: ["price": .double], cost: 8)
        let refusal = #expect(throws: ExpressionRefusal.self) {
            try conditions.condition(source, over: ["price": .double], cost: 7)
        }
        #expect(refusal?.problems.map(\.code) == [.cost])
        #expect(refusal?.problems.first?.message.contains("at least 8 units and at most 8;") == true)
    }

    @Test(arguments: [nil, 200] as [Int?])
    func `the answer of a refused condition names its cost with the longest texts`(maxBytes: Int?) throws {
        let refusal = #expect(throws: ExpressionRefusal.self) {
            try conditions.condition(
                "name == headline", over: ["name": .string, "headline": .string],
                maxBytes: maxBytes.map { ["name": $0, "headline": $0] } ?? ["name": 4096, "headline": 4096], cost: 1)
        }
        #expect(refusal?.problems.first?.message.contains("at most \(3 + (maxBytes ?? 4096) / 10);") == true)
    }

    @Test func `two values of unknown type are compared as two texts of 4,096 bytes`() throws {
        #expect(try most("headline != previous.headline") == 4 + 409)
        #expect(try most("headline != previous.headline", .string) == 4 + 409)
    }

    @Test func `the length that an app states counts in the estimate`() throws {
        #expect(try most("headline != previous.headline", .string, maxBytes: 200) == 4 + 20)
        #expect(try most("name.contains('x')", .string, maxBytes: 200) < most("name.contains('x')", .string) / 10)
        // A number has no length.
        #expect(try most("name > 1.0", .double, maxBytes: 200) == most("name > 1.0", .double))
    }

    @Test(arguments: ["a", "temperature_of_the_water_in_the_harbour", "weather.temperature_of_the_water"])
    func `an evaluation costs at most the estimate, also of fields with long names`(field: String) throws {
        let source = "\(field) > 1.0 && \(field) < 3.0"
        let cost = try conditions.expression(source, over: [field: .double]).cost
        let program = try conditions.condition(source, over: [field: .double], cost: cost.lowerBound)
        var state = ItemState(.merge)
        state.apply(.init([field: ItemValue(.double(2))], at: Timestamp(milliseconds: 0)))
        let bindings = try #require(conditions.bindings("i", state))
        #expect(try program.holds(bindings, limit: cost.upperBound))
        #expect(throws: ExpressionError.self) { try program.holds(bindings, limit: 5) }
    }

    // MARK: While they are evaluated

    private func state(_ names: String...) -> ItemState {
        var state = ItemState(.merge)
        for name in names {
            state.apply(
                .init(
                    ["name": ItemValue(.string(name)), "price": ItemValue(.double(2))], at: Timestamp(milliseconds: 0)))
        }
        return state
    }

    private static let long = String(repeating: "a", count: 4000)

    @Test func `an evaluation ends at the limit of its app, and others go on`() throws {
        let shapes = ConditionShapes(conditions.environment)
        var index = ItemIndex(shapes)
        index.costLimit = 50
        let fields: [String: ExpressionType] = ["name": .dynamic, "price": .dynamic]
        let sources = ["name.contains('b') || name.contains('c')", "name != previous.name", "price > 1.0"]
        for (number, source) in sources.enumerated() {
            let program = try conditions.condition(source, over: fields)
            _ = index.add(
                Int64(number), .everyCrossing, shape: try shapes.number(of: program), constants: program.constants)
        }
        var outcome = index.update(try #require(conditions.bindings("i", state(Self.long, Self.long + "b"))))
        #expect(outcome.fired.map(\.subscription) == [2])
        #expect(outcome.overCost == 2 && outcome.errors == 1)
        outcome = index.update(try #require(conditions.bindings("i", state(Self.long, "b"))))
        #expect(outcome.fired.map(\.subscription).sorted() == [0, 1])
        #expect(outcome.overCost == 0 && outcome.errors == 0)
    }

    @Test func `armed conditions that cost too much are counted`() throws {
        let shapes = ConditionShapes(conditions.environment)
        var index = ItemIndex(shapes, at: conditions.bindings("i", state(Self.long, Self.long + "b")))
        index.costLimit = 50
        for (number, source) in ["name.contains('b')", "name != previous.name", "price > 1.0"].enumerated() {
            let program = try conditions.condition(source, over: ["name": .dynamic, "price": .dynamic])
            _ = index.add(Int64(number), .once, shape: try shapes.number(of: program), constants: program.constants)
        }
        #expect(index.takeArmedOverCost() == 2)
        #expect(index.takeArmedOverCost() == 0)
    }

    @Test func `expressions of a notification have one cost limit`() throws {
        let format = try NotificationFormat(
            .object([
                .init(name: "title", value: .string("${{ name + name }}")),
                .init(name: "body", value: .string("${{ price + 1.0 }}")),
            ]))
        let template = try NotificationTemplate(format, over: ["name", "price"], in: conditions)
        let state = state(Self.long)
        let values = NotificationTemplate.Values(
            subscription: SubscriptionID(Bytes16(high: 0, low: 1)), key: nil, item: try #require(ItemName("i")),
            state: state, bindings: try #require(conditions.bindings("i", state)), reader: Reader())
        let whole = template.render(values, .none)
        #expect(whole.errors == 0 && whole.json["body"] == .string("3"))
        let cut = template.render(values, .none, cost: 100)
        #expect(cut.errors == 2 && cut.json["title"] == .string("") && cut.json["body"] == .string(""))
    }
}
