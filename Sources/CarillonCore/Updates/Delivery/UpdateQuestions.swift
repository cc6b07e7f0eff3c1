// Requests of a home to the other homes about updates. Each home answers for its devices.

/// A hint that an update was published or resumed. The home notifies its present devices.
package struct UpdatePublished: HomeQuestion {
    package typealias Answer = Void
    package var update: UpdateSerial
    package var app: AppSerial
    package var shard: Shard? { nil }
}

/// Notifies the home that an update ended. The home answers when no session of it can receive the update any more.
package struct UpdateEnded: HomeQuestion {
    package typealias Answer = Void
    package var update: UpdateSerial
    package var app: AppSerial
    package var shard: Shard? { nil }
}

/// Requests to wake sleeping devices for an update. The home puts the update into the inboxes of its own devices, and returns
/// their bindings.
package struct WakeForUpdate: HomeQuestion {
    package typealias Answer = [BindingSerial]
    package var waking: WakingUpdate
    package var sleeping: [AppBinding]
    package var shard: Shard? { nil }
}
