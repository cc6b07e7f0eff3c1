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
    /// Whether the home has all shards, for as long as it lives.
    let hasAllShards: Bool
    let ownShards: Mutex<ShardSet>
    private let listener = AtomicLazyReference<ArrivalListener>()
    private let duties = AtomicLazyReference<Duties>()

    /// What the home does for callers of ``Home/ask(_:)`` and ``Home/handle(_:)``.
    package final class Duties: Sendable {
        let answers: HomeAnswers
        let handle: @Sendable (HomeRequest) async throws(HomeFault) -> HomeResponse

        /// The home keeps both, so they must not keep the home.
        package init(
            _ answers: HomeAnswers,
            handle: @escaping @Sendable (HomeRequest) async throws(HomeFault) -> HomeResponse
        ) {
            self.answers = answers
            self.handle = handle
        }
    }

    /// - Parameters:
    ///   - inbox: The inboxes of the home, with the same sessions.
    ///   - store: The handle of the home (``FencedStore/home(_:)``).
    ///   - shards: The shards of the home.
    package init(inbox: Inbox, sessions: LiveSessions, store: any HomeStore, shards: ShardSet = .all) {
        self.inbox = inbox
        self.sessions = sessions
        self.store = store
        hasAllShards = shards == .all
        ownShards = Mutex(shards)
    }

    func has(_ shard: Shard) -> Bool { hasAllShards || ownShards.withLock { $0.contains(shard) } }

    /// Informs the listener of each arrival from now on. A home has one listener, which is set before devices arrive.
    package func inform(_ listener: ArrivalListener) {
        let first = self.listener.storeIfNil(listener)
        precondition(first === listener, "A home has one listener for arrivals.")
    }

    /// Answers questions and requests from now on. A home gets its duties once, before other homes know it.
    package func take(_ duties: Duties) {
        let first = self.duties.storeIfNil(duties)
        precondition(first === duties, "A home has its duties already.")
    }

    /// Nil if the home answers nothing yet.
    var presentDuties: Duties? { duties.load() }

    /// Nil if nothing follows arrivals.
    var arrivalListener: ArrivalListener? { listener.load() }
}
