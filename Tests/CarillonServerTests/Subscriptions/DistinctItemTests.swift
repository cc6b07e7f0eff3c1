import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Testing

@testable import CarillonServer

/// Which firing replaces which in the inbox.
@Suite(.timeLimit(.minutes(5)))
struct DistinctItemTests {
    private static func body(
        _ format: String = #"{"title":"Order ${n} filled","collapse":"order-${n}"}"#, item: String = "events",
        rest: String = ""
    ) -> String { #"{"items":["\#(item)"],"fields":["n"],"format":\#(format)\#(rest)}"# }

    private func publish(_ count: Int, _ item: String = "events", to world: SubscriptionWorld) async throws {
        let lines = (0..<count).map { #"{"item":"\#(item)","fields":{"n":\#($0)}}"# }.joined(separator: "\n")
        let answer = try await world.routes.request(.post, "/v1/items/updates", key: world.sender, lines)
        #expect(answer.status == 200)
    }

    private func orders(_ numbers: some Sequence<Int>) -> [String] { numbers.map { "Order \($0) filled" } }

    @Test(arguments: [#"{"title":"Order ${n} filled","collapse":"order-${n}"}"#, #"{"title":"Order ${n} filled"}"#])
    func `each of two hundred events of one body is pushed, and kept in its order`(_ format: String) async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(format))
        try await publish(200, to: world)
        #expect(try await world.titles() == orders(0..<200))
        let domain = world.routes.domain
        let due = try await domain.outbox.due { _ in true }.pushes
        #expect(due.count == 200)
        for push in due {
            guard case .alert(_, let topic, _) = push.content else {
                Issue.record("a wake replaces an event")
                continue
            }
            #expect(topic == nil)
        }
    }

    @Test func `on an item that merges, a firing replaces the one with the same collapse`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(
            Self.body(#"{"title":"Order ${n} filled","collapse":"order-${{ n > 2.0 }}"}"#, item: "stock.ACME"))
        try await publish(5, "stock.ACME", to: world)
        #expect(try await world.titles() == orders([2, 4]))
        let other = try await SubscriptionWorld()
        try await other.subscribe(Self.body(#"{"title":"Order ${n} filled"}"#, item: "stock.ACME"))
        try await publish(5, "stock.ACME", to: other)
        #expect(try await other.titles() == orders([4]))
    }

    @Test func `events that wait for their pace are kept in the inbox, too`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(rest: #","maxFrequency":0.5"#))
        try await publish(5, to: world)
        try await world.settle()
        for _ in 0..<5 {
            world.advance(seconds: 2)
            _ = try await world.routes.domain.firings.notifyThrottled()
        }
        #expect(try await world.titles() == orders(0..<5))
    }

    @Test func `a long collapse makes a short topic`() {
        func topic(_ collapse: String?, isDistinct: Bool = false) -> String? {
            let members = collapse.map { [JSONValue.Member(name: "collapse", value: .string($0))] } ?? []
            return FiringCollapseKey.text(
                of: .init(
                    subscription: SubscriptionID(Bytes16(high: 0, low: 1)), key: nil, item: "i", at: 0,
                    notification: .object(members)), isDistinct: isDistinct)
        }
        let long = String(repeating: "x", count: 10_000)
        #expect(topic(long)?.utf8.count ?? 0 < 50)
        #expect(topic(long) != topic(long + "y"))
        #expect(topic("a") == topic("a"))
        #expect(topic("a") != topic(nil))
        #expect(topic("") == topic(nil))
        #expect(topic("a", isDistinct: true) == nil)
        #expect(topic(nil, isDistinct: true) == nil)
    }
}
