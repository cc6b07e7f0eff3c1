/// The difference between the subscriptions that a device wants, each with a key and a hash of its definition, and those that it has.
package struct SubscriptionComparison: Equatable, Sendable {
    /// The wanted keys that no subscription with the same hash has.
    package private(set) var missing: [String: String]
    /// The subscriptions whose keys are not wanted. A subscription without a key is not compared.
    package private(set) var unwanted: [SubscriptionSerial] = []
    private let wanted: [String: String]

    /// - Parameter wanted: The hash for each key.
    package init(wanted: [String: String]) {
        self.wanted = wanted
        missing = wanted
    }

    /// - Parameter hash: The hash of the definition of the subscription.
    package mutating func add(_ subscription: SubscriptionSerial, key: String?, hash: @autoclosure () -> String) {
        guard let key else { return }
        guard let wantedHash = wanted[key] else { return unwanted.append(subscription) }
        if wantedHash == hash() { missing[key] = nil }
    }
}

extension SubscriptionRegistrar {
    /// Removes the subscriptions of a device whose keys it does not want.
    ///
    /// - Parameters:
    ///   - wanted: The hash of the definition for each wanted key.
    ///   - hash: Returns the hash of a definition.
    /// - Returns: The wanted keys that the device has to send, in their order, and the number of removed subscriptions.
    package func compare(
        _ wanted: [String: String], of device: Device, hash: @Sendable (Subscription.Definition) -> String
    ) async throws -> (missing: [String], removed: Int) {
        var comparison = SubscriptionComparison(wanted: wanted)
        var after = SubscriptionSerial(0)
        while true {
            let some = try await list(of: device, .init(), after: after, limit: Self.comparedAtOnce)
            for subscription in some {
                let definition = subscription.definition
                comparison.add(subscription.serial, key: definition.key, hash: hash(definition))
            }
            guard some.count == Self.comparedAtOnce, let last = some.last else { break }
            after = last.serial
        }
        let removed = try await remove(these: comparison.unwanted, of: device)
        return (comparison.missing.keys.sorted(), removed)
    }

    private static let comparedAtOnce = 100
}
