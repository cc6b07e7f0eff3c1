/// What a change of a device's status does to the subscriptions of the device. Each change gives those that did not end another revision, so
/// that firings that were found before are late (``SubscriptionMachine/fire(ofRevision:at:)``).
extension StatusChange {
    /// Whether the engine of items reads the subscriptions again.
    package var isFollowed: Bool { self != .reasonChanged }

    /// Whether the subscriptions are armed again on items that have not fired since they were armed: the updates in the meantime were not
    /// evaluated.
    package var armsAgain: Bool { self == .resumed }
}
