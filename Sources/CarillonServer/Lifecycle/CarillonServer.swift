package import CarillonCore
import CarillonWire
import Hummingbird
package import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// A whole Carillon server: one process, one data directory.
///
/// `run()` serves until it is told to stop, by graceful shutdown or by cancellation. It then refuses new work, says
/// goodbye to every socket at its own moment, waits for requests under way, and brings what was accepted to the disk.
package struct CarillonServer: Service {
    /// What is known when the server listens.
    package struct Running: Sendable {
        package let domain: HomeDomain
        package let addresses: Addresses
        package let port: Int
    }

    private let settings: ServerSettings
    private let stores: any StoreFactory
    private let metrics: MetricsRegistry?
    private let logger: Logger
    private let onRunning: @Sendable (Running) async -> Void
    private let link: @Sendable (any Home) -> any Home

    /// - Parameters:
    ///   - stores: Opens the store of the data directory.
    ///   - metrics: What is shown at `/metrics`, when the settings say where that is.
    ///   - onRunning: Called once, when the server listens.
    ///   - link: Returns how connections reach a home.
    package init(
        settings: ServerSettings, stores: any StoreFactory, metrics: MetricsRegistry? = nil, logger: Logger,
        onRunning: @escaping @Sendable (Running) async -> Void = { _ in },
        link: @escaping @Sendable (any Home) -> any Home = { $0 }
    ) {
        self.settings = settings
        self.stores = stores
        self.metrics = metrics
        self.logger = BoundedLog.of(logger).logger
        self.onRunning = onRunning
        self.link = link
    }

    /// - Throws: ``StoreOpenFault`` when the data directory cannot be used, at first or any more; ``ListenFault`` when an address
    ///   cannot be listened on; ``ListenerLost`` when a listener closed and cannot be opened again.
    package func run() async throws {
        let opened = try stores.open(directory: settings.dataDirectory, makesMissing: true, settings: settings.store)
        do {
            let lost = try await serve(opened.store)
            try await close(opened)
            if let lost { throw lost }
        } catch let fault as StoreFault {
            throw StoreOpenFault(fault, directory: settings.dataDirectory)
        }
        logger.info("stopped")
    }

    /// - Throws: ``StoreFault`` when the store became useless while it was open.
    private func close(_ opened: OpenedStore) async throws {
        var uselessness: StoreFault?
        do { try await opened.store.checkHealth() } catch let fault as StoreFault { uselessness = fault }
        do {
            try opened.close()
        } catch let fault as StoreFault where uselessness == nil {
            logger.warning(
                "the log of the database could not be emptied: keep the -wal file beside it",
                metadata: ["reason": "\(fault.message)"])
        }
        if let uselessness { throw uselessness }
    }

    /// - Returns: Why the server ended without being told to.
    private func serve(_ store: any Store) async throws -> ListenerLost? {
        try await TimerFiles.open()
        let group = MultiThreadedEventLoopGroup.singleton
        let addresses = Addresses(base: settings.publicURL ?? settings.listenURL, former: settings.formerPublicURLs)
        let resolver = NameResolver(group: group, lookUp: settings.outward.lookUp)
        defer { resolver.shutdown() }
        let caller = try OutwardCaller(group: group, resolver: resolver, settings: settings.outward)
        let domain = try await HomeDomain(
            store: store, addresses: addresses.own, scheduler: .on(group), logger: logger,
            watchSettings: settings.outward.watches, workLimits: settings.outward.pace,
            allowances: settings.allowances, gatewaySettings: settings.gateways, userKeys: .over(caller),
            vetoSource: .over(caller),
            attachmentFiles: stores.attachmentFiles(of: settings.dataDirectory), attachmentLimits: settings.attachments,
            answerBytes: settings.answerBytes, wrappedBy: try settings.keyFile.map { path in try KeyFile.open(path) },
            link: link)
        let anonymousApp = try await anonymousApp(domain)
        let readiness = Readiness()
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        let limit = ConnectionLimit(limit: settings.maximumSockets, gauge: .sockets, refused: .socketsRefused)
        let routes = Routes.all(
            domain: domain, addresses: addresses, store: store, settings: settings, readiness: readiness, sockets: limit)
        let local = routes.router().buildResponder()
        let responder: any HTTPResponder<RouteContext> =
            domain.homes.isOne
            ? local
            : RequestForwarder(
                domain: domain.shared, homes: domain.homes, routes: routes, local: local,
                clientAddress: settings.clientAddress)
        let sockets = SocketHandler.Shared(
            domain: domain.shared,
            settings: settings,
            identifier: SocketIdentifier(homes: domain.homes, anonymousApp: anonymousApp),
            requests: SocketRequests(
                domain: domain, addresses: addresses, anonymousApp: anonymousApp, responder: local, logger: logger),
            limit: limit)
        let loops = try await LoopContext.all(of: group, slots: settings.keepAliveSeconds + 2, time: domain.time)
        let (othersListen, othersListening) = AsyncStream.makeStream(of: Void.self)
        let metricsListener = metrics.flatMap { registry in
            settings.metrics.map {
                MetricsListener(
                    registry: registry,
                    health: HealthRoutes(
                        store: store, readiness: readiness, gateways: domain.gateways, isOnOwnListener: true),
                    host: $0.host, port: $0.port, domain: domain, readiness: readiness, retry: settings.listenerRetry,
                    logger: quiet
                ) {
                    othersListening.finish()
                }
            }
        }
        if metricsListener == nil { othersListening.finish() }
        let listener = HTTPListener(
            group: group, places: settings.listenPlaces,
            connections: HTTPConnectionHandler.Shared(
                routes: RouteCall(
                    responder: responder, answers: domain.answers, server: domain.server, logger: quiet),
                publishDoor: PublishDoor(domain: domain, addresses: addresses, logger: quiet),
                sockets: sockets,
                clientAddress: settings.clientAddress,
                limit: ConnectionLimit(
                    limit: settings.maximumConnections, gauge: .connections, refused: .connectionsRefused),
                shares: ConnectionShares(settings.shares, isBehindProxy: settings.clientAddress.header != nil),
                settings: settings.requests,
                sharing: CrossOriginSharing(origins: settings.allowedOrigins.on(own: addresses.own))),
            loops: loops, readiness: readiness, retry: settings.listenerRetry, logger: logger, others: othersListen
        ) { [onRunning, settings] channel in
            readiness.beganListening()
            await onRunning(
                Running(domain: domain, addresses: addresses, port: channel.localAddress?.port ?? settings.port))
            await settings.notifySocket?.send("READY=1")
        }
        var first: [ServiceGroupConfiguration.ServiceConfiguration] = []
        if let socket = settings.notifySocket, let time = socket.watchdog {
            // Stopped last.
            first.append(.init(service: Watchdog(socket: socket, time: time, group: group, store: store)))
        }
        if let metricsListener { first.append(.init(service: metricsListener)) }
        var configuration = ServiceGroupConfiguration(
            services: first + [
                .init(
                    service: StoreSweeper(
                        store: domain.runtime.store, domain: domain, settings: settings, logger: logger)),
                .init(
                    service: Sweeper(
                        domain: domain, collector: DeviceCollector(domain: domain, settings: settings, logger: logger),
                        settings: settings, logger: logger)),
                .init(service: WatchRunner(domain: domain, caller: caller, logger: logger)),
                .init(service: PushRunner(outbox: domain.outbox, gateways: domain.gateways, logger: logger)),
                .init(service: FreedMemory()),
                .init(service: listener),
                // Stopped first, as services stop in the reverse of this order.
                .init(service: StopNotice(readiness: readiness, homes: domain.homes, notifySocket: settings.notifySocket)),
            ],
            logger: quiet)
        configuration.maximumGracefulShutdownDuration = .seconds(settings.stopSeconds)
        var lost: ListenerLost?
        do {
            try await ServiceGroup(configuration: configuration).run()
        } catch let fault as ListenerLost {
            lost = fault
        }
        await sockets.limit.awaitEmpty(atMost: .seconds(settings.stopSeconds))
        // The served time is written first: the store marks devices that were seen with it.
        await domain.shared.writeRemaining()
        await domain.writeRemaining()
        return lost
    }

    /// The app of devices that never registered; it is made when it is missing.
    private func anonymousApp(_ domain: HomeDomain) async throws -> AppID? {
        guard let name = settings.anonymousApp else { return nil }
        let app = try AppID.checked(name)
        if try await domain.apps.serial(of: app) == nil { _ = try await domain.apps.create(app) }
        return app
    }
}
