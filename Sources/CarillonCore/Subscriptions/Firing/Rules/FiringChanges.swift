/// The net changes of rows that firings cause.
package struct FiringChanges: Equatable, Sendable {
    /// Status, its moment and the moment of the last firing change.
    package var subscriptions: [SubscriptionSerial: SubscriptionMachine] = [:]
    /// The number of the last firing and the moment of the last delivery change.
    package var watches: [FiringKey: FiringWatch] = [:]
    /// Throttled firings that leave.
    package var removed: [Int64] = []
    /// Firings that are held from now on, in the order of their numbers.
    package var added: [ThrottledFiring] = []
    /// When the first throttled firing is due, if any is left. It applies after all other changes.
    package var dues: [FiringKey: Timestamp] = [:]

    package init() {}
}
