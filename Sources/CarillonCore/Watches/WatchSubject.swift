/// The ping or the callback of a watch.
package enum WatchSubject: Equatable, Sendable {
    case ping(Watch)
    case callback(DisconnectCallback)
}

/// A ping or a callback that is leased.
package typealias LeasedCall = LeasedItem<WatchSubject>
