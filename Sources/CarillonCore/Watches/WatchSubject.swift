/// The ping or the callback of a watch.
package enum WatchSubject: Equatable, Sendable {
    case ping(Watch)
    case callback(DisconnectCallback)
}

/// A leased ping or callback.
package typealias LeasedCall = LeasedItem<WatchSubject>
