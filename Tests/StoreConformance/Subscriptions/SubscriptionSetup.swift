package import CarillonCore

/// Prepares what no method of ``SubscriptionStore`` can: counts near their limits, and damage.
package protocol SubscriptionSetup: Sendable {
    /// Makes the store count this many items and subscriptions of an app. No rows are added.
    func setCounts(items: Int, subscriptions: Int, of app: AppSerial, in store: any Store) async throws
    /// Damages a stored firing so that its targets cannot be read.
    func damageFiring(_ number: Int64, in store: any Store) async throws
}
