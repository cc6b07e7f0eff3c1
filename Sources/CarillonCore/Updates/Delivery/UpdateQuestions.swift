// What a home asks the other homes about updates. Each home answers for its devices.

/// A hint: an update was published, or was resumed. The home notifies the devices that are there.
package struct UpdatePublished: HomeQuestion {
    package typealias Answer = Void
    package var update: UpdateSerial
    package var app: AppSerial
    package var shard: Shard? { nil }
}

/// An update ended. The home answers when no session of it can receive the update any more.
package struct UpdateEnded: HomeQuestion {
    package typealias Answer = Void
    package var update: UpdateSerial
    package var app: AppSerial
    package var shard: Shard? { nil }
}

/// Sleeping devices are to be woken for an update. The home puts the update into the inboxes of those that are its devices, and answers
/// with their bindings.
package struct WakeForUpdate: HomeQuestion {
    package typealias Answer = [BindingSerial]
    package var waking: WakingUpdate
    package var sleeping: [AppBinding]
    package var shard: Shard? { nil }
}
