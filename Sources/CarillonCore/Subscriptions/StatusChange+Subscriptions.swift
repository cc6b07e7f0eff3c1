/// The effect of a change of a device's status on the subscriptions of the device. Each change increments the revision of the
/// subscriptions that did not end. Firings that were found before the change are then ignored
/// (``SubscriptionMachine/fire(ofRevision:at:)``).
extension StatusChange {
    /// Whether the engine of items must read the subscriptions again.
    package var isFollowed: Bool { self != .reasonChanged }

    /// Whether the subscriptions are armed again on items on which they have not fired since they were last armed. The updates
    /// during the suspension were not evaluated.
    package var armsAgain: Bool { self == .resumed }
}
