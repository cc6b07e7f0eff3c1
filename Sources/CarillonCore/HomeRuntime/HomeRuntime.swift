import Synchronization

/// A home in this process. It owns the inboxes and the connections of its devices, and its handle of the store.
///
/// Features do not name this type. They use it as a ``LocalHome``, and the handle as their own store protocol. Connections use it
/// as a ``Home``.
package final class HomeRuntime: Sendable {
    package let inbox: Inbox
    package let sessions: LiveSessions
    /// The handle through which everything of the home is read and written.
    package let store: any HomeStore
    /// Admits calls by their shards; nil if the home always has all shards.
    package let gate: ShardGate?
    private let listener = AtomicLazyReference<ArrivalListener>()
    private let answering = AtomicLazyReference<Kept<HomeAnswers>>()
    private let handling = AtomicLazyReference<Kept<Handler>>()
    private let finder = AtomicLazyReference<Kept<@Sendable (Shard) -> (any Home)?>>()

    /// Runs a whole request at the home. A request that waits for a long time leaves its pass first.
    package typealias Handler = @Sendable (HomeRequest, ShardPass?) async throws(HomeFault) -> HomeResponse

    /// A value that is set once.
    private final class Kept<Value: Sendable>: Sendable {
        let value: Value

        init(_ value: Value) { self.value = value }
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

    /// Informs the listener of each arrival from now on. A home has one listener, which must be set before devices arrive.
    package func inform(_ listener: ArrivalListener) {
        let first = self.listener.storeIfNil(listener)
        precondition(first === listener, "A home can have only one listener for arrivals.")
    }

    /// Answers requests of other homes (``Home/ask(_:)``) from now on. Call this method once. The home keeps the answers, so they
    /// must not have a strong reference to the home.
    package func take(_ answers: HomeAnswers) {
        let kept = Kept(answers)
        let first = answering.storeIfNil(kept)
        precondition(first === kept, "The home's answers can be set only once.")
    }

    /// Sets the function that finds the homes of shards that this home released. Call this method once, before the first move of
    /// a shard. The home keeps the function, which must not have a strong reference to the home.
    package func findOthers(by home: @escaping @Sendable (Shard) -> (any Home)?) {
        let kept = Kept(home)
        let first = finder.storeIfNil(kept)
        precondition(first === kept, "The other homes can be set only once.")
    }

    /// Returns the home that has a shard after a move; nil if the home has no finder.
    func newHome(_ shard: Shard) -> (any Home)? { finder.load()?.value(shard) }

    /// Handles requests (``Home/handle(_:)``) from now on. Call this method once. The home keeps the handler, which must not have
    /// a strong reference to the home.
    package func take(_ handler: @escaping Handler) {
        let kept = Kept(handler)
        let first = handling.storeIfNil(kept)
        precondition(first === kept, "The home's handler can be set only once.")
    }

    /// Nil if no answers are set yet.
    var answers: HomeAnswers? { answering.load()?.value }

    /// Nil if no handler is set yet.
    var handler: Handler? { handling.load()?.value }

    /// Nil if no listener is set.
    var arrivalListener: ArrivalListener? { listener.load() }
}
