import CarillonCore
import CarillonWire
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle

/// Serves `GET /metrics` on an address of its own, because metrics are for the operator only. Health checks are answered there,
/// too.
struct MetricsListener: Service {
    let registry: MetricsRegistry
    let health: HealthRoutes
    let host: String
    let port: Int
    /// The homes of the process. Their counts are added.
    let homes: [HomeDomain]
    let handOvers: HandOverStatistics
    let readiness: Readiness
    let retry: ListenerRetry.Limits
    let logger: Logger
    /// Can be called more than once, and also if the listener ends before it listens.
    let onListening: @Sendable () -> Void

    /// A scraper uses only one connection.
    private static let connections = 16

    func run() async throws {
        defer { onListening() }
        let routes = Routes(homes[0].answers)
        routes.on(.get, "/metrics") { _, _ in
            Response(
                status: .ok, text: Array(registry.text(with: await samples()).utf8), type: PrometheusText.mediaType)
        }
        health.add(to: routes)
        let responder = routes.router().buildResponder()
        let place = ListenPlace.address(host: host, port: port)
        let keeper = ListenerKeeper(place: place, limits: retry, readiness: readiness, logger: logger)
        try await keeper.run(until: { Task.isShuttingDownGracefully || Task.isCancelled }) { opened in
            try await ListenFault.naming(place) {
                try await listen(responder) {
                    opened()
                    onListening()
                }
            }
        }
    }

    /// Listens until the server stops, or the listener closes.
    private func listen(
        _ responder: some HTTPResponder<RouteContext>, opened: @escaping @Sendable () -> Void
    ) async throws {
        let (open, closing) = AsyncStream.makeStream(of: Void.self)
        let application = Application(
            responder: responder,
            server: .http1(configuration: .init(idleTimeout: .seconds(60))),
            configuration: .init(
                address: .hostname(host, port: port), serverName: nil, backlog: Self.connections,
                availableConnectionsDelegate: MaximumAvailableConnections(Self.connections)),
            onServerRunning: { channel in
                channel.closeFuture.whenComplete { _ in closing.finish() }
                do {
                    // The handler must precede that of the application, which closes the listener on each error of `accept`.
                    try await channel.eventLoop.submit {
                        try channel.pipeline.syncOperations.addHandler(AcceptPause(logger: logger), position: .first)
                    }.get()
                } catch {
                    channel.close(promise: nil)
                }
                opened()
            }, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await application.run() }
            group.addTask { for await _ in open {} }
            try await group.next()
            // The application continues until its last connection is closed. Only a stop waits for that.
            if Task.isShuttingDownGracefully { try await group.waitForAll() } else { group.cancelAll() }
        }
    }

    private static func samples(of waiting: InboxUsage.Waiting) -> [MetricsRegistry.Sample] {
        [.init(.inboxEnvelopes, value: Double(waiting.envelopes)), .init(.inboxBytes, value: Double(waiting.bytes))]
    }

    private func samples() async -> [MetricsRegistry.Sample] {
        let populations = homes.map { $0.home.population }
        // Any home can read this number for the whole store. If the store cannot be read, these samples are left out.
        let waiting = try? await homes[0].home.waitingInAll()
        let gateways = homes[0].gateways
        let pausedQueues = Double(gateways.faults.count)
        let own: [MetricsRegistry.Sample] = [
            .init(.buildInfo, CarillonVersion.text, value: 1),
            .init(.homes, value: Double(populations.count)),
            .init(.sessions, value: Double(populations.reduce(0) { $0 + $1.sessions })),
            .init(.waiters, value: Double(populations.reduce(0) { $0 + $1.waiters })),
            .init(.callsUnderWay, value: Double(homes.reduce(0) { $0 + $1.work.underWay })),
            .init(.pushesUnderWay, value: Double(gateways.underWay)),
            .init(.pushQueuesPaused, value: pausedQueues),
            .init(.pushQueuesPausedDeprecated, value: pausedQueues),
        ]
        let inboxes = waiting.map(Self.samples) ?? []
        return await ProcessStatistics.samples() + own + inboxes + handOvers.samples(in: homes[0].homes.shards)
    }
}
