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
    /// Lets calls in by their shards; nil if the home has all shards for as long as it lives.
    package let gate: ShardGate?
    private let listener = AtomicLazyReference<ArrivalListener>()
    private let duties = AtomicLazyReference<Duties>()
    private let finder = AtomicLazyReference<Finder>()

    private final class Finder: Sendable {
        let home: @Sendable (Shard) -> (any Home)?
        init(_ home: @escaping @Sendable (Shard) -> (any Home)?) { self.home = home }
    }

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
    ///   - gate: The shards of the home; nil for all shards.
    package init(inbox: Inbox, sessions: LiveSessions, store: any HomeStore, gate: ShardGate? = nil) {
        self.inbox = inbox
        self.sessions = sessions
        self.store = store
        self.gate = gate
    }

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

    /// Finds the homes of shards that this home gave away. A later finder is ignored. The home keeps the finder, which must not keep the home.
    func findOthers(by home: @escaping @Sendable (Shard) -> (any Home)?) { _ = finder.storeIfNil(Finder(home)) }

    /// Returns the home that a shard was given to; nil if no shard moved.
    func laterHome(_ shard: Shard) -> (any Home)? { finder.load()?.home(shard) }

    /// Nil if the home answers nothing yet.
    var presentDuties: Duties? { duties.load() }

    /// Nil if nothing follows arrivals.
    var arrivalListener: ArrivalListener? { listener.load() }
}
