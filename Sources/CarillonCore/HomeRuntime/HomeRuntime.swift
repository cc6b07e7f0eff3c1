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
    /// Admits calls by their shards; nil if the home has all shards for as long as it lives.
    package let gate: ShardGate?
    private let listener = AtomicLazyReference<ArrivalListener>()
    private let answering = AtomicLazyReference<Kept<HomeAnswers>>()
    private let handling = AtomicLazyReference<Kept<Handler>>()
    private let finder = AtomicLazyReference<Kept<@Sendable (Shard) -> (any Home)?>>()

    /// Runs a whole request at the home. A request that waits for long leaves its pass before.
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

    /// Informs the listener of each arrival from now on. A home has one listener, which is set before devices arrive.
    package func inform(_ listener: ArrivalListener) {
        let first = self.listener.storeIfNil(listener)
        precondition(first === listener, "A home can have only one listener for arrivals.")
    }

    /// Answers questions (``Home/ask(_:)``) from now on. A home gets its answers once. It keeps them, so they must not keep the home.
    package func take(_ answers: HomeAnswers) {
        let kept = Kept(answers)
        let first = answering.storeIfNil(kept)
        precondition(first === kept, "The home's answers can be set only once.")
    }

    /// Finds the homes of shards that this home gave away. A home whose shards move gets its finder once, before the first move. It keeps
    /// the finder, which must not keep the home.
    package func findOthers(by home: @escaping @Sendable (Shard) -> (any Home)?) {
        let kept = Kept(home)
        let first = finder.storeIfNil(kept)
        precondition(first === kept, "The other homes can be set only once.")
    }

    /// Returns the home that a shard was given to; nil if the home has no finder.
    func laterHome(_ shard: Shard) -> (any Home)? { finder.load()?.value(shard) }

    /// Handles requests (``Home/handle(_:)``) from now on. A home gets its handler once. It keeps the handler, which must not keep the home.
    package func take(_ handler: @escaping Handler) {
        let kept = Kept(handler)
        let first = handling.storeIfNil(kept)
        precondition(first === kept, "The home's handler can be set only once.")
    }

    /// Nil if the home answers no questions yet.
    var answers: HomeAnswers? { answering.load()?.value }

    /// Nil if the home handles no requests yet.
    var handler: Handler? { handling.load()?.value }

    /// Nil if nothing follows arrivals.
    var arrivalListener: ArrivalListener? { listener.load() }
}
