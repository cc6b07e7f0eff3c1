package import CarillonCore
import CarillonWire
import Hummingbird
package import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// A complete Carillon server: one process with one data directory.
///
/// `run()` serves until graceful shutdown or cancellation. The server then refuses new requests, closes the sockets one after
/// another, waits for pending requests, and stores all accepted data on disk.
package struct CarillonServer: Service {
    /// The state of a server that has begun to listen.
    package struct Running: Sendable {
        /// The homes of the process.
        package let homes: [HomeDomain]
        package let addresses: PublicAddresses
        package let port: Int

        /// The first home.
        package var domain: HomeDomain { homes[0] }
    }

    private let settings: ServerSettings
    private let stores: any StoreFactory
    private let metrics: MetricsRegistry?
    private let logger: Logger
    private let onRunning: @Sendable (Running) async -> Void
    private let link: (@Sendable (any Home) -> any Home)?

    /// - Parameters:
    ///   - stores: Opens the store of the data directory.
    ///   - metrics: The metrics that are served at `/metrics`, if the settings contain an address for it.
    ///   - onRunning: Called once, when the server listens.
    ///   - link: Returns the home that connections and other homes use to reach a home. Without it, they call the only home
    ///     directly, and each of several homes over a ``LinkedHome``.
    package init(
        settings: ServerSettings, stores: any StoreFactory, metrics: MetricsRegistry? = nil, logger: Logger,
        onRunning: @escaping @Sendable (Running) async -> Void = { _ in },
        link: (@Sendable (any Home) -> any Home)? = nil
    ) {
        self.settings = settings
        self.stores = stores
        self.metrics = metrics
        self.logger = BoundedLog.of(logger).logger
        self.onRunning = onRunning
        self.link = link
    }

    /// - Throws: ``StoreOpenFault`` if the data directory cannot be used, now or later; ``ListenFault`` if the server cannot
    ///   listen on an address; ``ListenerLost`` if a listener closed and cannot be opened again.
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

    /// - Throws: ``StoreFault`` if the store became unusable while it was open.
    private func close(_ opened: OpenedStore) async throws {
        var uselessness: StoreFault?
        do { try await opened.store.checkHealth() } catch let fault as StoreFault { uselessness = fault }
        do {
            try opened.close()
        } catch let fault as StoreFault where uselessness == nil {
            logger.warning(
                "cannot empty the log of the database; keep the -wal file next to the database",
                metadata: ["reason": "\(fault.message)"])
        }
        if let uselessness { throw uselessness }
    }

    /// - Returns: The reason if the server ended by itself; nil after a requested stop.
    private func serve(_ store: any Store) async throws -> ListenerLost? {
        try await TimerFiles.open()
        let group = MultiThreadedEventLoopGroup.singleton
        let addresses = PublicAddresses(base: settings.publicURL ?? settings.listenURL, former: settings.formerPublicURLs)
        let resolver = NameResolver(group: group, lookup: settings.outward.lookup)
        defer { resolver.shutdown() }
        let caller = try OutwardCaller(group: group, resolver: resolver, settings: settings.outward)
        let (shared, homes) = try await HomeDomain.open(
            store, homeConfiguration(addresses, caller, group), homes: settings.homes, link: { reached($0) })
        let domain = homes[0]
        let anonymousApp = try await anonymousApp(domain)
        let readiness = Readiness()
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        let limit = ConnectionLimit(limit: settings.maximumSockets, gauge: .sockets, refused: .socketsRefused)
        let quotas = ConnectionQuotas(settings.quotas, isBehindProxy: settings.clientAddress.header != nil)
        let routes = HomeRoutes(
            of: homes, addresses: addresses, quotas: quotas, clientAddress: settings.clientAddress, logger: quiet
        ) { home in
            Routes.all(
                domain: home, addresses: addresses, store: store, settings: settings, readiness: readiness, sockets: limit)
        }
        // The homes refer to the handlers of their requests weakly.
        defer { withExtendedLifetime(routes) {} }
        let sockets = SocketHandler.Shared(
            domain: domain.shared,
            settings: settings,
            identifier: SocketIdentifier(homes: domain.homes, anonymousApp: anonymousApp, logger: logger),
            requests: SocketRequests(
                domain: domain, addresses: addresses, anonymousApp: anonymousApp, responder: routes.local, logger: logger),
            limit: limit)
        let loops = try await LoopContext.all(of: group, slots: settings.keepAliveSeconds + 2, time: domain.time)
        let (othersListen, othersListening) = AsyncStream.makeStream(of: Void.self)
        let metricsListener = metrics.flatMap { registry in
            settings.metrics.map {
                MetricsListener(
                    registry: registry,
                    health: HealthRoutes(
                        store: store, readiness: readiness, gateways: domain.gateways, isOnOwnListener: true),
                    host: $0.host, port: $0.port, homes: homes,
                    handOvers: HandOverStatistics(store: store, ticks: domain.ticks), readiness: readiness,
                    retry: settings.listenerRetry, logger: quiet
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
                    responder: routes.responder, answers: domain.answers, server: domain.server, logger: quiet),
                publishHandler: PublishHandler(domain: domain, addresses: addresses, logger: quiet),
                sockets: sockets,
                clientAddress: settings.clientAddress,
                limit: ConnectionLimit(
                    limit: settings.maximumConnections, gauge: .connections, refused: .connectionsRefused),
                quotas: quotas,
                settings: settings.requests,
                sharing: CrossOriginSharing(origins: settings.allowedOrigins.on(publicURLs: addresses.publicURLs))),
            loops: loops, readiness: readiness, retry: settings.listenerRetry, logger: logger, others: othersListen
        ) { [onRunning, settings] channel in
            readiness.beganListening()
            await onRunning(
                Running(homes: homes, addresses: addresses, port: channel.localAddress?.port ?? settings.port))
            await settings.notifySocket?.send("READY=1")
        }
        var services: [ServiceGroupConfiguration.ServiceConfiguration] = []
        if let socket = settings.notifySocket, let time = socket.watchdog {
            // This service stops last.
            services.append(.init(service: Watchdog(socket: socket, time: time, group: group, store: store)))
        }
        if let metricsListener { services.append(.init(service: metricsListener)) }
        services.append(
            .init(
                service: StoreSweeper(store: domain.runtime.store, domain: domain, settings: settings, logger: logger)))
        for home in homes { services += runners(of: home, caller) }
        services += [
            .init(service: FreedMemory()),
            .init(service: listener),
            // This service stops first, because services stop in the reverse of this order.
            .init(service: StopNotice(readiness: readiness, homes: shared.homes, notifySocket: settings.notifySocket)),
        ]
        var configuration = ServiceGroupConfiguration(services: services, logger: quiet)
        configuration.maximumGracefulShutdownDuration = .seconds(settings.stopSeconds)
        var lost: ListenerLost?
        do {
            try await ServiceGroup(configuration: configuration).run()
        } catch let fault as ListenerLost {
            lost = fault
        }
        await sockets.limit.awaitEmpty(atMost: .seconds(settings.stopSeconds))
        // The last calls of sockets may not have reached their homes yet.
        for case let link as LinkedHome in shared.homes.all() { await link.flush() }
        // The served time is written first, because the store uses it for devices that were seen.
        await shared.writeRemaining()
        for home in homes { await home.writeRemaining() }
        return lost
    }

    private func homeConfiguration(
        _ addresses: PublicAddresses, _ caller: OutwardCaller, _ group: any EventLoopGroup
    ) throws -> HomeDomain.Configuration {
        HomeDomain.Configuration(
            addresses: addresses.publicURLs, scheduler: .on(group), logger: logger, watchSettings: settings.outward.watches,
            workLimits: settings.outward.pace, rateLimits: settings.rateLimits, gatewaySettings: settings.gateways,
            userKeys: .over(caller), approvalHookCaller: .over(caller),
            attachmentFiles: stores.attachmentFiles(of: settings.dataDirectory), attachmentLimits: settings.attachments,
            answerBytes: settings.answerBytes, wrapping: try settings.keyFile.map { path in try KeyFile.open(path) })
    }

    private func reached(_ home: any Home) -> any Home {
        if let link { return link(home) }
        return settings.homes == 1 ? home : LinkedHome(home, random: .system)
    }

    /// Returns the services for the devices and items of a home.
    private func runners(
        of home: HomeDomain, _ caller: OutwardCaller
    ) -> [ServiceGroupConfiguration.ServiceConfiguration] {
        [
            .init(
                service: Sweeper(
                    domain: home, unusedDevices: UnusedDeviceRemover(domain: home, settings: settings, logger: logger),
                    settings: settings, logger: logger)),
            .init(service: WatchRunner(domain: home, caller: caller, logger: logger)),
            .init(service: PushRunner(outbox: home.outbox, gateways: home.gateways, logger: logger)),
        ]
    }

    /// Returns the app of devices without registration. Creates the app if it does not exist.
    private func anonymousApp(_ domain: HomeDomain) async throws -> AppID? {
        guard let name = settings.anonymousApp else { return nil }
        let app = try AppID.checked(name)
        if try await domain.apps.serial(of: app) == nil { _ = try await domain.apps.create(app) }
        return app
    }
}
