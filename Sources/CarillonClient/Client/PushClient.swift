import CarillonMessages
import CarillonWire
import Logging
import NIOCore
import NIOPosix
public import ServiceLifecycle
import Synchronization

/// One install of an app, and its connection to a Carillon server.
///
/// A client registers the device once, keeps its identity and its channels in durable storage, holds one connection
/// for all channels, and comes back by itself after every loss of it. Run it in a `ServiceGroup`, or by itself with
/// ``start()`` and ``stop()``. What apps see of messages are ``PushChannel``s: get them from ``channel(_:)``.
public final class PushClient: Sendable, Service {
    private enum Running {
        case no
        case inCaller
        /// Ended by `stop()`, or with the client.
        case byItself(Task<Void, Never>)
        /// Ended with the last wake that is handled, unless the app starts the client meanwhile.
        case forWakes(Task<Void, Never>, count: Int)
    }

    let runner: SessionRunner
    let registrar: ClientRegistrar
    /// This install, as Apple's push service and the server know it.
    public let device: PushDevice
    /// Updates that backends publish for an audience.
    public let updates: PushUpdates
    /// Files that this device sends to others and fetches; kept in a directory of the durable storage.
    public let attachments: AttachmentStore
    /// Asks services of other apps.
    public let serviceClient: ServiceClient
    /// Offers services to other apps.
    public let serviceProvider: ServiceProvider
    private let services: ServiceEngine
    /// How long after a graceful shutdown iterations end that belong to no service of the group. Those that do end when
    /// their own service is shut down, which must come first: a service that ends before is a fault to its group. The two
    /// cannot be distinguished.
    private let graceOfOutsiders: Duration
    private let loop: ConnectionLoop
    private let running = Mutex(Running.no)

    /// Opens the durable storage; nothing is sent before the client runs.
    ///
    /// Reads and writes a file on the caller's thread. A storage that was left by the same app under another address of the
    /// server is taken over: the client runs on when the server at the new address says the same server id, and gives
    /// ``lastFailure`` the code ``PushError/Code/storageMismatch``, and tries again, as long as it does not.
    /// - Throws: ``PushError`` with ``PushError/Code/configurationInvalid``, or with one of the storage's codes. A
    ///   storage that cannot be used is left as it is.
    public convenience init(configuration: Configuration) throws(PushError) {
        try self.init(configuration: configuration, graceOfOutsiders: .seconds(5))
    }

    init(configuration: Configuration, graceOfOutsiders: Duration) throws(PushError) {
        self.graceOfOutsiders = graceOfOutsiders
        let server = try configuration.checkedServer()
        let tls = try TrustRoots.context(path: configuration.trustRootsPath)
        let store = try ClientStore(directory: AbsolutePath.of(configuration.storageDirectory))
        // Paths that are stored are compared with this one.
        let storage = store.paths.directory
        let stored = try store.load(server: server.text, app: configuration.app)
        let settings = ClientSession.Settings(
            server: server.text, backOff: configuration.backOff, keepAlive: configuration.keepAlive,
            receivesFirings: configuration.receivesFirings, buffer: configuration.channelBuffer)
        runner = SessionRunner(
            store: store, session: ClientSession(settings, restoring: stored),
            shared: configuration.sharedDirectory.map(SharedFolder.init), logger: configuration.logger)
        store.health.setListener { [listeners = runner.deviceListeners, failures = runner.failures] change in
            switch change {
            case .failed(let message):
                let error = PushError(.storageUnavailable, message)
                failures.note(error)
                listeners.notify([.storageFailed(error)])
            case .recovered: listeners.notify([.storageRecovered])
            }
        }
        let transport = NIOTransport(tls: tls, timeout: configuration.connectTimeout)
        let api = ServerAPI(
            server.text, over: transport, backOff: configuration.backOff,
            recognition: ServerRecognition(memory: NamedServers(stored.namedServers, store: store)),
            failures: runner.failures
        ) { [weak runner] credential in
            // The runner has the registrar, which has the API.
            runner?.repeatsRegistration(afterRefusalOf: credential) ?? false
        }
        registrar = ClientRegistrar(
            server: server, app: configuration.app, clientKey: configuration.clientKey, api: api)
        runner.listeners.withLock { [registrar] in $0.registrar = registrar }
        device = PushDevice(runner: runner, registrar: registrar)
        loop = ConnectionLoop(runner: runner, registrar: registrar, transport: transport)
        updates = PushUpdates(
            runner: runner, server: server, api: api, store: store)
        let transfers = TransferAPI(api: api, files: transport) { [runner] in runner.session.usableIdentity?.credential }
        attachments = AttachmentStore(directory: storage + "/attachments", storage: storage, server: transfers)
        services = ServiceEngine(
            runner: runner, app: configuration.app, box: ServiceBox(store: store),
            server: ServiceAPI(api: api, asks: runner.asks) { [runner] in runner.session.usableIdentity },
            files: AttachmentStore(directory: storage + "/services", storage: storage, server: transfers),
            inbox: MessageFiles(root: storage + "/Inbox", logger: configuration.logger),
            local: configuration.localDirectory.map { LocalSockets(directory: AbsolutePath.of($0)) },
            logger: configuration.logger)
        serviceClient = ServiceClient(engine: services)
        serviceProvider = ServiceProvider(engine: services)
        runner.listeners.withLock { [services] listeners in
            listeners.scopeChanged = { [weak services] in services?.scopeChanged() }
            listeners.servicesKnown = { [weak services] revision, isRestored in
                services?.offers.serverHas(revision, isRestored: isRestored)
            }
        }
    }

    deinit {
        switch running.withLock({ $0 }) {
        case .byItself(let task), .forWakes(let task, _): task.cancel()
        case .no, .inCaller: break
        }
    }

    // MARK: Running

    /// Keeps the connection until the task is cancelled or its service group shuts down gracefully.
    ///
    /// It does not end because the server is away, or refuses this device: see ``lastFailure``. When it ends, what was
    /// sent is flushed, the socket is closed, and iterations over ``PushChannel/events`` end; after a graceful shutdown
    /// each when its own service of the group is shut down, wherever that stands in the group, and those of no service
    /// after five seconds, with iterations over ``availabilityUpdates``. It can be run again.
    ///
    /// A group shuts down its last service first. When services that stand between one that iterates and the client behind
    /// it take longer than those five seconds to end, put the client first.
    /// - Throws: ``PushError`` with ``PushError/Code/alreadyRunning``; `CancellationError` when the task was cancelled.
    public func run() async throws {
        let wakes = try running.withLock { running throws(PushError) -> Task<Void, Never>? in
            let wakes: Task<Void, Never>?
            switch running {
            case .no: wakes = nil
            case .forWakes(let task, _): wakes = task
            case .inCaller, .byItself: throw Self.alreadyRunning
            }
            running = .inCaller
            return wakes
        }
        defer { running.withLock { $0 = .no } }
        wakes?.cancel()
        await wakes?.value
        let (runner, loop, updates, services) = (runner, loop, updates, services)
        await cancelWhenGracefulShutdown { await Self.run(runner, loop, updates, services) }
        let runs = runner.endRun()
        await runner.settle()
        guard !Task.isCancelled else {
            runner.endIterations(runs)
            throw CancellationError()
        }
        let youngest = runner.availability.youngest
        MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: TimeAmount(graceOfOutsiders)) { [runner] in
            runner.endIterations(runs)
            runner.availability.endIterations(upTo: youngest)
        }
    }

    /// Runs the client by itself, until ``stop()`` or until it is released.
    /// - Throws: ``PushError`` with ``PushError/Code/alreadyRunning``.
    public func start() throws(PushError) {
        try running.withLock { running throws(PushError) in
            switch running {
            case .no: running = .byItself(begin())
            case .forWakes(let task, let count): running = .byItself(count > 0 ? task : begin(after: task))
            case .inCaller, .byItself: throw Self.alreadyRunning
            }
        }
    }

    private func begin(after earlier: Task<Void, Never>? = nil) -> Task<Void, Never> {
        let (runner, loop, updates, services) = (runner, loop, updates, services)
        return Task {
            await earlier?.value
            await Self.run(runner, loop, updates, services)
            runner.endIterations(runner.endRun())
            await runner.settle()
        }
    }

    private static func run(
        _ runner: SessionRunner, _ loop: ConnectionLoop, _ updates: PushUpdates, _ services: ServiceEngine
    ) async {
        runner.resumeStarts()
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                group.addTask { await updates.run() }
                group.addTask { await services.run() }
                await loop.run()
                group.cancelAll()
            }
        } onCancel: {
            // The process may end before handlers that do not hear the cancellation.
            runner.stopStarts()
        }
    }

    enum WakeStart {
        case began
        /// It ran already for another wake.
        case joined
        /// It runs for the app.
        case runs
    }

    /// Has the client run until ``stopForWake(by:)``, which is to be said unless it runs for the app.
    func startForWake() -> WakeStart {
        running.withLock { running in
            switch running {
            case .no: running = .forWakes(begin(), count: 1)
            // The last one is just being ended.
            case .forWakes(let task, 0): running = .forWakes(begin(after: task), count: 1)
            case .forWakes(let task, let count):
                running = .forWakes(task, count: count + 1)
                return .joined
            case .inCaller, .byItself: return .runs
            }
            return .began
        }
    }

    /// A wake was handled. Ends what the first of them began, unless it is the app's by now.
    ///
    /// A handler can ignore that it is cancelled. After the moment this does not wait for the end, and the next run begins after it.
    func stopForWake(by end: ContinuousClock.Instant) async {
        let task = running.withLock { running -> Task<Void, Never>? in
            guard case .forWakes(let task, let count) = running else { return nil }
            running = .forWakes(task, count: max(0, count - 1))
            return count == 1 ? task : nil
        }
        guard let task else { return }
        task.cancel()
        // The wait is cancelled at the moment, which the task may not heed.
        let hasEnded = await Self.isDone(by: end) { try? await PendingResult<Void>.of { await task.value } }
        guard hasEnded else { return }
        running.withLock { running in
            if case .forWakes(task, count: 0) = running { running = .no }
        }
    }

    /// Ends what ``start()`` began, and returns when the connection is closed. Does nothing to a client that does not
    /// run, or that runs in ``run()``. The client can be started again.
    public func stop() async {
        guard case .byItself(let task) = running.withLock({ $0 }) else { return }
        task.cancel()
        await task.value
        running.withLock { running in
            // A second stop() may have been first, and a start() after it.
            if case .byItself(let present) = running, present == task { running = .no }
        }
    }

    // MARK: Looking

    /// Whether messages can arrive at this moment.
    public var availability: Availability { runner.availability.present }

    /// ``availability`` over time, beginning with the present value.
    public var availabilityUpdates: AvailabilityUpdates { AvailabilityUpdates(board: runner.availability) }

    /// The last thing that kept the client from its work: why a registration was refused, why there was no connection, or which
    /// address was answered by another program than the server, with which status.
    /// It is set by the first attempt that fails, and stays after the client has recovered; nil when nothing ever went
    /// wrong in this process.
    public var lastFailure: PushError? { runner.failures.last }

    /// The server's name for this device; nil before registration. It is not a secret.
    public var deviceID: String? { runner.session.registration.identity?.device }

    // MARK: Channels

    /// Gives the channel with an identifier, as the storage knows it; does no I/O.
    /// - Parameter identifier: 1 to 256 bytes of UTF-8, for instance `com.example.app.presence`.
    /// - Throws: ``PushError`` with ``PushError/Code/identifierInvalid``, or with ``PushError/Code/identifierInUse``
    ///   while another ``PushChannel`` with this identifier lives.
    public func channel(_ identifier: String) throws(PushError) -> PushChannel {
        guard (1...Limits.channelNameBytes).contains(identifier.utf8.count) else {
            throw PushError(
                .identifierInvalid,
                "A channel identifier has 1 to \(Limits.channelNameBytes) bytes of UTF-8, not \(identifier.utf8.count)."
            )
        }
        guard runner.identifierTaken(identifier) else {
            throw PushError(.identifierInUse, "A channel with the identifier \"\(identifier)\" lives already.")
        }
        return PushChannel(identifier: identifier, runner: runner)
    }

    /// Every channel that the storage knows, by its identifier: those that were connected once and not discarded, also by
    /// an earlier version of the app.
    public var channels: [PushChannelSummary] { runner.summaries }

    /// Ends a channel that no code of the app knows any more, and forgets it with all that waits in it.
    ///
    /// Legal in every state, and for an identifier that is not known; a ``PushChannel`` of it that lives is notified of
    /// ``PushChannelEvent/closed(token:)`` unless it had ended. The server is notified at once, or at the next connection. The
    /// messages that go with it were received, and their senders hear nothing more of them.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; nothing has changed then.
    public func discard(_ identifier: String) async throws(PushError) {
        try await runner.perform { session, _ in session.channelDiscarded(identifier) }
    }

    private static let alreadyRunning = PushError(
        .alreadyRunning, "The client runs already; run() and start() need a client that is stopped.")
}
