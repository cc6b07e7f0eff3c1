/// A home in this process. It owns the inboxes and the connections of its devices, and its handle of the store.
///
/// Features do not name this type: they have it as a ``LocalHome``, and the handle as their own store protocol.
package final class HomeRuntime: Sendable {
    package let inbox: Inbox
    package let sessions: LiveSessions
    /// The handle through which everything of the home is read and written.
    package let store: any HomeStore

    /// - Parameters:
    ///   - inbox: The inboxes of the home, with the same sessions.
    ///   - store: The handle of the home (``FencedStore/home(_:)``).
    package init(inbox: Inbox, sessions: LiveSessions, store: any HomeStore) {
        self.inbox = inbox
        self.sessions = sessions
        self.store = store
    }
}
