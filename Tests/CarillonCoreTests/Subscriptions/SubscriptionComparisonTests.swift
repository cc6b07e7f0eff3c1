import CarillonCore
import Testing

struct SubscriptionComparisonTests {
    private typealias Present = (serial: Int64, key: String?, hash: String)

    private static func compare(_ wanted: [String: String], with present: [Present]) -> SubscriptionComparison {
        var comparison = SubscriptionComparison(wanted: wanted)
        for subscription in present {
            comparison.add(SubscriptionSerial(subscription.serial), key: subscription.key, hash: subscription.hash)
        }
        return comparison
    }

    @Test func `a subscription that the device has is neither missing nor unwanted`() {
        let comparison = Self.compare(["a": "1", "b": "2"], with: [(1, "a", "1"), (2, "b", "2")])
        #expect(comparison.missing.isEmpty && comparison.unwanted.isEmpty)
    }

    @Test func `a changed definition is missing, and its subscription stays`() {
        let comparison = Self.compare(["a": "1", "b": "2"], with: [(1, "a", "other")])
        #expect(comparison.missing == ["a": "1", "b": "2"])
        #expect(comparison.unwanted.isEmpty)
    }

    @Test func `a key that the device does not want is unwanted`() {
        let comparison = Self.compare(["a": "1"], with: [(1, "x", "1"), (2, "a", "1"), (3, "y", "1")])
        #expect(comparison.missing.isEmpty)
        #expect(comparison.unwanted == [SubscriptionSerial(1), SubscriptionSerial(3)])
    }

    @Test func `a subscription without a key is not compared`() {
        let comparison = Self.compare([:], with: [(1, nil, "1"), (2, "a", "1")])
        #expect(comparison.unwanted == [SubscriptionSerial(2)])
    }

    @Test func `a key is wanted also after its subscription was found`() {
        let comparison = Self.compare(["a": "1"], with: [(1, "a", "1"), (2, "a", "1")])
        #expect(comparison.missing.isEmpty && comparison.unwanted.isEmpty)
    }

    @Test func `the hash of an unwanted subscription is not made`() {
        func hash() -> String {
            Issue.record("the hash is not needed")
            return ""
        }
        var comparison = SubscriptionComparison(wanted: ["a": "1"])
        comparison.add(SubscriptionSerial(1), key: "b", hash: hash())
        comparison.add(SubscriptionSerial(2), key: nil, hash: hash())
        #expect(comparison.unwanted == [SubscriptionSerial(1)])
    }
}
