import Synchronization

/// A home in this process. It owns the inboxes and the connections of its devices, and its handle of the store.
///
/// Features do not name this type: they have it as a ``LocalHome``, and the handle as their own store protocol. Connections have it as a
/// ``Home``.
package final class HomeRuntime: Sendable {
    package let inbox: Inbox
    package let sessions: LiveSessions
    /// The handle through which everything of the home is read and written.
    package let store: any HomeStore
    private let listener = AtomicLazyReference<ArrivalListener>()

    /// - Parameters:
    ///   - inbox: The inboxes of the home, with the same sessions.
    ///   - store: The handle of the home (``FencedStore/home(_:)``).
    package init(inbox: Inbox, sessions: LiveSessions, store: any HomeStore) {
        self.inbox = inbox
        self.sessions = sessions
        self.store = store
    }

    /// Informs the listener of each arrival from now on. A home has one listener, which is set before devices arrive.
    package func inform(_ listener: ArrivalListener) {
        let first = self.listener.storeIfNil(listener)
        precondition(first === listener, "A home has one listener for arrivals.")
    }

    /// Nil if nothing follows arrivals.
    var arrivalListener: ArrivalListener? { listener.load() }
}
