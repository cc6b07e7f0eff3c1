import CarillonCore
import Testing

/// The reading of hand-overs by the engine of items.
struct ItemHandOverTests {
    private func make(_ kind: HandOver.Kind, _ content: String) -> HandOver {
        HandOver(number: 7, shard: Shard(number: 3), kind: kind, content: content)
    }

    private func item(_ app: Int64, _ name: String) throws -> ItemKey {
        ItemKey(app: AppSerial(app), name: try #require(ItemName(name)))
    }

    @Test func `a device whose subscriptions changed is read, and changes no row`() {
        let handOver = make(.subscriptionsChanged, "12")
        #expect(ItemHandOver(handOver) == .subscriptionsChanged(of: DeviceSerial(12)))
        #expect(AppliedHandOver(handOver) == AppliedHandOver(number: 7, change: nil))
    }

    @Test func `a subscription that was made is read, and changes no row`() {
        let handOver = make(.subscriptionPut, "12")
        #expect(ItemHandOver(handOver) == .subscriptionPut(SubscriptionSerial(12)))
        #expect(AppliedHandOver(handOver) == AppliedHandOver(number: 7, change: nil))
    }

    @Test(arguments: ["a", "a b", " a ", "\u{301}a", "1 2 3 4"])
    func `a removed subscription is read with any name of an item, and its shape is removed`(name: String) throws {
        let handOver = make(.subscriptionRemoved, "1 22 5 " + name)
        let expected = ItemHandOver.subscriptionRemoved(SubscriptionSerial(22), from: try item(1, name), shape: 5)
        #expect(ItemHandOver(handOver) == expected)
        #expect(AppliedHandOver(handOver) == AppliedHandOver(number: 7, change: .removeShape(5)))
    }

    @Test func `a removed subscription without a condition has no shape`() throws {
        let handOver = make(.subscriptionRemoved, "1 22  a")
        let expected = ItemHandOver.subscriptionRemoved(SubscriptionSerial(22), from: try item(1, "a"), shape: nil)
        #expect(ItemHandOver(handOver) == expected)
        #expect(AppliedHandOver(handOver).change == nil)
    }

    @Test(arguments: ["", " ", " \n", " \u{7F}a", " " + String(repeating: "a", count: 129)])
    func `the shape of a removed subscription is removed without a name that can be read`(rest: String) {
        let handOver = make(.subscriptionRemoved, "1 22 5" + rest)
        #expect(ItemHandOver(handOver) == .subscriptionRemoved(SubscriptionSerial(22), from: nil, shape: 5))
        #expect(AppliedHandOver(handOver) == AppliedHandOver(number: 7, change: .removeShape(5)))
    }

    @Test(
        arguments: [
            (.subscriptionsChanged, ""), (.subscriptionsChanged, "a"), (.subscriptionsChanged, "1 2"),
            (.subscriptionPut, ""), (.subscriptionPut, "a"), (.subscriptionPut, "1 2"),
            (.subscriptionRemoved, ""), (.subscriptionRemoved, "1"), (.subscriptionRemoved, "1 2"),
            (.subscriptionRemoved, "a 2 3 i"), (.subscriptionRemoved, "1 a 3 i"), (.subscriptionRemoved, "1 2 a i"),
        ] as [(HandOver.Kind, String)])
    func `content that cannot be read means nothing`(kind: HandOver.Kind, content: String) {
        #expect(ItemHandOver(make(kind, content)) == nil)
        #expect(AppliedHandOver(make(kind, content)) == AppliedHandOver(number: 7, change: nil))
    }
}
