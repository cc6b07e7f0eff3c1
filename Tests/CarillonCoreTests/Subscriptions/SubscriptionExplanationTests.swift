import CarillonBasics
import CarillonExpression
import CarillonWire
import TestSupport
import Testing

@testable import CarillonCore

/// The explanation of a subscription agrees with the engine.
struct SubscriptionExplanationTests {
    private let conditions = ItemConditions { _, _ in nil }

    private func subscription(
        _ trigger: String?, _ status: SubscriptionMachine.Status = .subscribed, isPaused: Bool = false
    ) throws -> Subscription {
        let at = Timestamp(milliseconds: 0)
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("x"))]))
        return Subscription(
            serial: SubscriptionSerial(1), id: SubscriptionID(Bytes16(high: 0, low: 1)), device: DeviceSerial(1),
            app: AppSerial(1), user: nil,
            definition: .init(
                items: [try #require(ItemName("i"))], fields: ["a", "b", "c"], trigger: trigger, format: format),
            machine: SubscriptionMachine(
                .once, status, at: at, revision: 1, lastFiredAt: nil, isPaused: isPaused), createdAt: at)
    }

    private func explain(
        _ subscription: Subscription, _ fields: [String: ItemValue]?, cost: Int = .max,
        at now: Timestamp = Timestamp(milliseconds: 1)
    ) throws -> SubscriptionExplanation {
        let name = try #require(ItemName("i"))
        var stored: StoredItem?
        if let fields {
            var state = ItemState(.merge)
            state.apply(.init(fields, at: Timestamp(milliseconds: 1)))
            stored = StoredItem(state: state, version: 1)
        }
        return try SubscriptionExplanation(of: subscription, on: name, stored, in: conditions, cost: cost, at: now)
    }

    @Test func `a subscription that cools down or has expired does not fire though its condition is true`() throws {
        let one = ["a": ItemValue(.double(1))]
        var resting = try subscription("a > 0.0")
        resting.definition.policy = .every(coolDownSeconds: 10)
        resting.machine = SubscriptionMachine(
            .every(coolDownSeconds: 10), .subscribed, at: Timestamp(milliseconds: 0), revision: 1,
            lastFiredAt: Timestamp(milliseconds: 0), isPaused: false)
        #expect(try explain(resting, one, at: Timestamp(milliseconds: 9_999)).verdict == .coolingDown)
        #expect(try explain(resting, one, at: Timestamp(milliseconds: 10_000)).verdict == .holds)
        #expect(try explain(resting, ["a": ItemValue(.double(-1))]).verdict == .doesNotHold)
        var ended = try subscription("a > 0.0")
        ended.definition.expiresAt = Timestamp(milliseconds: 5)
        #expect(try explain(ended, one, at: Timestamp(milliseconds: 4)).verdict == .holds)
        #expect(try explain(ended, one, at: Timestamp(milliseconds: 5)).verdict == .expired)
    }

    @Test func `a condition beyond its cost limit has no value, unless the engine finds it in the index`() throws {
        let long = ["a": ItemValue(.string(String(repeating: "x", count: 1000)))]
        for trigger in ["a.contains('x') || a.contains('y')", "a == a"] {
            let over = try explain(subscription(trigger), long, cost: 50)
            #expect(over.verdict == .noValue && over.error?.contains("exceeded its cost limit") == true, "\(trigger)")
            #expect(try explain(subscription(trigger), long, cost: 500).verdict == .holds, "\(trigger)")
        }
        let terms = (0..<8).map { "a == 'x\($0)'" }
        let lookedUp = try subscription("!(" + terms.joined(separator: " || ") + ")")
        #expect(try explain(lookedUp, long, cost: 5).verdict == .holds)
    }

    private static let long = ItemValue(.string(String(repeating: "x", count: 1000)))
    private static let decided: [(String, ItemValue, SubscriptionExplanation.Verdict)] = [
        ("a == a || b == 1.0", ItemValue(.double(1)), .holds), ("a == a || b == 1.0", ItemValue(.double(2)), .noValue),
        ("a == a && b == 1.0", ItemValue(.double(2)), .doesNotHold), ("a != a", ItemValue(.double(1)), .noValue),
        ("a.contains('x') && b > 100.0", ItemValue(.double(1)), .doesNotHold),
        ("a.contains('x') && b > 100.0", ItemValue(.double(101)), .noValue),
        ("a.contains('x') && b > 100.0", ItemValue(.null), .noValue),
        ("a.contains('x') || b > 100.0", ItemValue(.double(101)), .noValue),
    ]

    @Test(arguments: decided)
    func `a condition of which a part costs too much is decided as by the engine`(
        trigger: String, value: ItemValue, verdict: SubscriptionExplanation.Verdict
    ) throws {
        let fields = ["a": Self.long, "b": value]
        #expect(try explain(subscription(trigger), fields, cost: 50).verdict == verdict)
        let shapes = ConditionShapes(conditions.environment)
        var index = ItemIndex(shapes)
        index.costLimit = 50
        let program = try ExpressionProgram.unchecked(trigger, in: conditions.environment)
        _ = index.add(1, .once, shape: try shapes.number(of: program), constants: program.constants)
        var state = ItemState(.merge)
        state.apply(.init(fields, at: Timestamp(milliseconds: 1)))
        let fires = !index.update(try #require(conditions.bindings("i", state))).fired.isEmpty
        #expect(fires == (verdict == .holds))
    }

    @Test func `each verdict has its reason`() throws {
        let one = ["a": ItemValue(.double(1))]
        #expect(try explain(subscription("a > 0.0"), nil).verdict == .noUpdate)
        #expect(try explain(subscription("a > 0.0"), one).verdict == .holds)
        #expect(try explain(subscription(nil), one).verdict == .holds)
        #expect(try explain(subscription("a > 1.0"), one).verdict == .doesNotHold)
        let without = try explain(subscription("b > 1.0"), one)
        #expect(without.verdict == .noValue && without.error != nil)
        #expect(try explain(subscription("a > 0.0", .triggered), one).verdict == .triggered)
        #expect(try explain(subscription("a > 0.0", .triggered, isPaused: true), one).verdict == .deviceSuspended)
    }

    @Test func `the explanation agrees with the engine, and its parts with the whole, on random conditions`() throws {
        var random = SeededRandom.forTest()
        let shapes = ConditionShapes(conditions.environment)
        let values: [ExpressionValue] = [.double(1), .double(2), .string("x"), .null, .bool(true)]
        let constants = ["1.0", "2.0", "'x'", "null", "true"]
        func comparison() -> String {
            let sign = ["==", "!=", "<", "<=", ">", ">="].randomElement(using: &random) ?? "=="
            let parts = [
                ["a", "b", "c"].randomElement(using: &random) ?? "a", constants.randomElement(using: &random) ?? "1.0",
            ]
            let text = "\(parts[0]) \(sign) \(parts[1])"
            return Bool.random(using: &random) ? text : "!(\(text))"
        }
        for _ in 0..<1000 {
            let trigger = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                "(" + (0..<Int.random(in: 1...3, using: &random)).map { _ in comparison() }.joined(separator: " && ") + ")"
            }.joined(separator: " || ")
            var fields: [String: ItemValue] = [:]
            for name in ["a", "b", "c"] where Int.random(in: 0..<4, using: &random) > 0 {
                fields[name] = ItemValue(values.randomElement(using: &random) ?? .null)
            }
            let explanation = try explain(try subscription(trigger), fields)
            var state = ItemState(.merge)
            state.apply(.init(fields, at: Timestamp(milliseconds: 1)))
            let bindings = try #require(conditions.bindings("i", state))
            var index = ItemIndex(shapes)
            let program = try ExpressionProgram.unchecked(trigger, in: conditions.environment)
            _ = index.add(1, .once, shape: try shapes.number(of: program), constants: program.constants)
            let fires = !index.update(bindings).fired.isEmpty
            #expect(fires == (explanation.verdict == .holds), "\(trigger) \(fields)")
            let holds = explanation.alternatives.contains { $0.allSatisfy(\.holds) }
            #expect(fires == holds, "\(trigger) \(fields)")
        }
    }
}
