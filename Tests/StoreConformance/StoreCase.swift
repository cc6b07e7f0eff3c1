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

    package static let all: [StoreCase] = [
        registry, homes, inbox, watches, pushes, attachments, attachmentRaces, services, subscribing, updating, concurrency,
    ].flatMap { $0 }

    static let registry: [StoreCase] = [
        server, serverTime, apps, registryRaces, documents, registryVersion, devices, registrations, users, channels,
        deletion, deletedApps,
    ].flatMap { $0 }
    static let homes: [StoreCase] = [
        incarnations, fencedWrites, fencedFeatures, shardMaps, shardedWork, shardedSweeps, handOvers,
    ].flatMap { $0 }
    static let inbox: [StoreCase] = [
        waiting, arrivals, ending, expiry, topics, room, idempotency, outcomes, origins, batches, inboxRaces,
    ].flatMap { $0 }
    static let pushes = wakes + formerUserWakes + outbox + alerts + unacceptedAlerts
    static let watches: [StoreCase] = [
        watch, pings, fairness, callBounds, clock, news, callbacks, watchRaces,
    ].flatMap { $0 }
    static let services = providers + clusters + requests + requestEnds + requestRaces
    static let subscribing = items + subscriptions + subscriptionEnding + watching + firings + heldFirings
    static let updating = published + updateEnding + bindings + completions + audiences + due
    static let concurrency = concurrentRegistry + concurrentPushes + contents
}

/// Where the stores under test come from.
package protocol StoreMaker: SubscriptionSetup, UpdateSetup {
    /// An empty store.
    func open(_ settings: StoreSettings) async throws -> any Store
    /// Stops the store as a server that ends does, and starts another over what it kept. Nil where nothing is kept.
    func reopen(_ store: any Store, _ settings: StoreSettings) async throws -> (any Store)?
    /// Makes a store of a backup of this one, which stays open. Nil where nothing is kept.
    func restore(_ store: any Store, _ settings: StoreSettings) async throws -> (any Store)?
    /// Every change of the store fails with the fault, until it is nil.
    func refuseChanges(of store: any Store, with fault: StoreFault?) async throws
    /// Runs the work after each commit, before a change in the commit is answered, until it is nil.
    func onCommit(of store: any Store, _ work: (@Sendable () -> Void)?) async throws
    /// Damages a watch, so that it cannot be read.
    func makeUnreadable(_ watch: WatchSerial, in store: any Store) async throws
}
