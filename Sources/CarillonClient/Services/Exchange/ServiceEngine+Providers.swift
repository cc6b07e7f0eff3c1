import CarillonBasics
import CarillonWire
import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The search for service providers.
extension ServiceEngine {
    /// - Parameter call: The call that needs a provider, and whose end bounds the lookup; nil for a lookup of half a minute.
    func find(
        _ query: [(String, String?)], for call: ServiceCall? = nil
    ) async throws -> [(provider: FoundProvider, keys: KeyBundle)] {
        let parts = query.compactMap { name, value in value.map { "\(name)=\($0.queryEncoded)" } }
        try await ready(isBounded: call != nil)
        let path = ServiceAPI.path + (parts.isEmpty ? "" : "?" + parts.joined(separator: "&"))
        let answer = try await server.persist(until: call?.endDate ?? Date.now + 30, .get, path)
        guard case .array(let providers)? = answer["providers"] else { return [] }
        let found = providers.compactMap { json -> (provider: FoundProvider, keys: KeyBundle)? in
            guard let keys = json["keys"].flatMap(KeyBundle.init), let provider = FoundProvider(json, keys) else {
                return nil
            }
            return (provider, keys)
        }
        if presentOwner.user == nil, let user = query.first(where: { $0.0 == "user" })?.1 {
            for (provider, _) in found where provider.type == .application {
                ownCache.name(user, of: provider.application.device ?? "")
            }
        }
        return found
    }

    /// Returns the device that receives a request, and its key.
    ///
    /// - Parameter anew: Whether the server is asked even if the cache has a recent answer.
    func provider(of call: ServiceCall, anew: Bool = false) async throws -> (peer: ServicePeer, keys: KeyBundle) {
        let key = ProviderCache.Key(application: call.to, service: call.method.service)
        if !anew, let known = providerCache[key] { return known }
        if !anew, let local, let earlier = providerCache.earlier(key), local.hasSocket(earlier.peer.device) {
            return earlier
        }
        let found = try await find([("app", call.to.app), ("device", call.to.device)], for: call)
        let offering = found.first { $0.provider.services.contains { $0.id == call.method.service } } ?? found.first
        guard let offering, let device = offering.provider.application.device else {
            throw ServiceError(.applicationNotFound, "There is no such provider that this device may call.")
        }
        let peer = ServicePeer(app: offering.provider.application.app, device: device)
        guard call.to.device == nil || call.to.device == device, peer.app == call.to.app else {
            throw ServiceError(.applicationNotFound, "The server found another provider than was asked for.")
        }
        try await authenticate(offering.keys, of: peer, user: ownCache.namedUsers[device])
        try await authorizeLocalRequests(of: peer)
        let exact = ProviderCache.Key(application: ServiceApplication(peer), service: call.method.service)
        for key in [key, exact] { providerCache[key] = (peer, offering.keys) }
        return (peer, offering.keys)
    }

    func icon(of application: ServiceApplication) async throws -> Data? {
        guard let device = application.device, AppID(application.app) != nil, DeviceID(device) != nil else { return nil }
        try await ready()
        return await server.image("\(ServiceAPI.path)/icon?app=\(application.app)&device=\(device)")
    }

    // MARK: Changes

    nonisolated func watchProviders() -> AsyncStream<[FoundProvider]> {
        defer { runner.providerChanges.send() }
        return providerWatchers.add()
    }

    /// While the app watches providers, searches again after each change that the server reports.
    func runProviders() async {
        var schedule = ClientReconnectSchedule(server.api.backOff)
        while !Task.isCancelled {
            await runner.providerChanges.wait()
            providerCache.removeAll()
            while providerWatchers.hasWatchers, !Task.isCancelled {
                do {
                    providerWatchers.notify(try await find([]).map(\.provider))
                    schedule.succeeded()
                    break
                } catch {
                    logger.info("cannot find providers of services; retrying", metadata: ["reason": "\(error)"])
                    try? await Task.sleep(for: schedule.failed(random: .random(in: 0..<1)))
                }
            }
        }
    }
}

/// The recent recipients of requests, so that not every request needs a search.
struct ProviderCache {
    struct Key: Hashable {
        var application: ServiceApplication
        var service: String
    }

    private var entries: [Key: (peer: ServicePeer, keys: KeyBundle, until: ContinuousClock.Instant)] = [:]
    private static let lifetime = Duration.seconds(5)
    /// How long a provider on the same machine stays valid after the server returned it.
    private static let localLifetime = Duration.seconds(86_400)
    private static let most = 256

    subscript(_ key: Key) -> (peer: ServicePeer, keys: KeyBundle)? {
        get { entries[key].flatMap { $0.until > .now ? ($0.peer, $0.keys) : nil } }
        set {
            if entries.count >= Self.most { removeAll() }
            entries[key] = newValue.map { ($0.peer, $0.keys, .now + Self.lifetime) }
        }
    }

    /// Returns a recipient of the last day.
    func earlier(_ key: Key) -> (peer: ServicePeer, keys: KeyBundle)? {
        entries[key].flatMap { $0.until - Self.lifetime + Self.localLifetime > .now ? ($0.peer, $0.keys) : nil }
    }

    mutating func remove(_ peer: ServicePeer) { entries = entries.filter { $0.value.peer != peer } }

    mutating func removeAll() { entries = [:] }
}

/// The watchers of providers. Each receives the newest list if it differs from the list before.
final class ProviderWatchers: Sendable {
    private struct Watcher {
        var stream: AsyncStream<[FoundProvider]>.Continuation
        var last: [FoundProvider]?
    }

    private struct State {
        var watchers: [UInt64: Watcher] = [:]
        var next: UInt64 = 0
    }

    private let state = Mutex(State())

    var hasWatchers: Bool { state.withLock { !$0.watchers.isEmpty } }

    func add() -> AsyncStream<[FoundProvider]> {
        let (stream, continuation) = AsyncStream.makeStream(of: [FoundProvider].self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.next += 1
            state.watchers[state.next] = Watcher(stream: continuation)
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.watchers.removeValue(forKey: number) }
        }
        return stream
    }

    func notify(_ providers: [FoundProvider]) {
        state.withLock { state in
            for (number, watcher) in state.watchers where watcher.last != providers {
                state.watchers[number]?.last = providers
                watcher.stream.yield(providers)
            }
        }
    }
}

extension FoundProvider {
    fileprivate init?(_ json: JSONValue, _ keys: KeyBundle) {
        guard let peer = ServicePeer(json), case .string(let name)? = json["name"],
            case .string(let version)? = json["version"], case .bool(let isLive)? = json["live"],
            case .array(let services)? = json["services"]
        else { return nil }
        self.init(
            application: ServiceApplication(peer), name: name, version: version, isLive: isLive,
            services: services.compactMap { service in
                guard case .string(let id)? = service["id"], case .string(let version)? = service["version"] else {
                    return nil
                }
                return .init(id: id, version: version)
            }, type: .application, fingerprint: Fingerprint.text(of: keys.identity))
        if json["type"] == .string(Kind.server.rawValue) { type = .server }
        if case .string(let icon)? = json["icon"] { self.icon = icon }
        if let place = json["server"], case .integer(let priority)? = place["priority"] {
            var server = Server(priority: priority)
            if case .string(let host)? = place["host"] { server.host = host }
            if case .integer(let port)? = place["port"] { server.port = port }
            self.server = server
        }
    }
}
