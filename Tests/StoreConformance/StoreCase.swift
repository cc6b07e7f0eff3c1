package import CarillonCore

/// Something that every store must do. A store's own tests run ``all`` of them over each of its makers.
///
/// Cases are functions: where one is a closure, Swift 6.3 takes a closure inside its `#expect` for another one of it.
package struct StoreCase: Sendable, CustomStringConvertible {
    package let description: String
    package let run: @Sendable (any StoreMaker) async throws -> Void

    init(_ description: String, _ run: @escaping @Sendable (any StoreMaker) async throws -> Void) {
        self.description = description
        self.run = run
    }

    package static let all: [StoreCase] =
        registry + inbox + watches + pushes + attachments + subscribing + updating + concurrency

    static let registry = server + apps + devices + registrations + users + channels + deletion
    static let inbox = waiting + arrivals + ending + expiry + topics + room + idempotency + outcomes + origins + batches
    static let pushes = wakes + outbox + alerts + unacceptedAlerts + gateways
    static let watches = watch + pings + fairness + callBounds + clock + news + callbacks
    static let subscribing = items + subscriptions + subscriptionEnding + watching + firings + heldFirings
    static let updating = published + updateEnding + bindings + completions + audiences + due
    static let concurrency = concurrentRegistry + servedTime + concurrentPushes + contents
}

/// Where the stores under test come from.
package protocol StoreMaker: SubscriptionSetup, UpdateSetup {
    /// An empty store.
    func open(_ settings: StoreSettings) async throws -> any Store
    /// Stops the store as a server that ends does, and starts another over what it kept. Nil where nothing is kept.
    func reopen(_ store: any Store, _ settings: StoreSettings) async throws -> (any Store)?
}
