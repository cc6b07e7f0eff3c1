/// The net changes of rows that firings cause.
package struct FiringChanges: Equatable, Sendable {
    /// Changes of the status, the time of its change, and the time of the last firing.
    package var subscriptions: [SubscriptionSerial: SubscriptionMachine] = [:]
    /// Changes of the number of the last firing, and of the time of the last delivery.
    package var watches: [FiringKey: FiringWatch] = [:]
    /// The numbers of throttled firings to remove.
    package var removed: [Int64] = []
    /// The firings to store as throttled, in the order of their numbers.
    package var added: [ThrottledFiring] = []
    /// The due time of the first throttled firing, if one is left. This change is applied after all others.
    package var dues: [FiringKey: Timestamp] = [:]

    package init() {}
}
