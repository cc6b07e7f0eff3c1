package import TestStores

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
        incarnations, fencedWrites, fencedFeatures, shardMaps, shardedWork, shardedSweeps, handOvers, counters,
    ].flatMap { $0 }
    static let inbox: [StoreCase] = [
        waiting, arrivals, ending, expiry, topics, room, idempotency, outcomes, origins, batches, inboxRaces,
    ].flatMap { $0 }
    static let pushes = wakes + formerUserWakes + outbox + alerts + unacceptedAlerts
    static let watches: [StoreCase] = [
        watch, pings, fairness, callBounds, clock, news, callbacks, watchRaces,
    ].flatMap { $0 }
    static let services = providers + clusters + requests + requestEnds + requestRaces
    static let subscribing = items + subscriptions + subscriptionEnding + watching + firings + throttledFirings
    static let updating = published + updateEnding + bindings + completions + audiences + due
    static let concurrency = concurrentRegistry + concurrentPushes + contents
}
