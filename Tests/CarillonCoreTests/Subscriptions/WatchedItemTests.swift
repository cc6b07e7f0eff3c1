import CarillonExpression
import Testing

@testable import CarillonCore

/// An item in memory.
struct WatchedItemTests {
    private static let condition = "price > 10.0"

    private static func bindings(_ price: Double) -> ExpressionBindings {
        ItemIndexTests.bindings(["price": .double(price)])
    }

    @Test(arguments: [1, 2] as [Int64])
    func `a refused target fires again only if its subscription was not armed since`(revision: Int64) async throws {
        let shapes = ConditionShapes(ItemIndexTests.environment)
        let program = try ItemIndexTests.program(Self.condition)
        let shape = try shapes.number(of: program)
        let key = ItemKey(app: AppSerial(1), name: try #require(ItemName("i")))
        let item = WatchedItem(
            key, StoredItem(state: ItemState(.merge), version: 1), ItemIndex(shapes, at: Self.bindings(1)))
        let now = Timestamp(milliseconds: 0)
        func target(_ revision: Int64) -> Firing.Target {
            Firing.Target(subscription: SubscriptionSerial(7), revision: revision)
        }
        func arm(_ revision: Int64, held: Bool) {
            let armed = ArmedSubscription(
                item: key, target: target(revision), owner: .several, policy: .everyCrossing, condition: nil,
                since: item.evaluatedVersion, held: held)
            item.arm(armed, isNew: true, shape: shape, constants: program.constants)
        }
        arm(1, held: false)
        let crossing = await item.evaluate(Self.bindings(11), at: now, pause: {})
        #expect(crossing.rows == [[target(1)]])
        // It is armed while its condition is true.
        arm(2, held: true)
        item.rearm(target(revision))
        let next = await item.evaluate(Self.bindings(12), at: now, pause: {})
        #expect(next.rows == (revision == 2 ? [[target(2)]] : []))
    }
}
