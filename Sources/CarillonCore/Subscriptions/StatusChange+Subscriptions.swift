/// The effect of a change of a device's status on the subscriptions of the device. Each change gives the subscriptions that
/// did not end another revision. Firings that were found before are then late
/// (``SubscriptionMachine/fire(ofRevision:at:)``).
extension StatusChange {
    /// Whether the engine of items reads the subscriptions again.
    package var isFollowed: Bool { self != .reasonChanged }

    /// Whether the subscriptions are armed again on items that have not fired since they were armed: the updates in the meantime were not
    /// evaluated.
    package var armsAgain: Bool { self == .resumed }
}
