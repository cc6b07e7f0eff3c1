import CarillonMessages
import CarillonWire
import Logging
import NIOCore
import NIOPosix
public import ServiceLifecycle
import Synchronization

/// One installation of an app, and its connection to a Carillon server.
///
/// A client registers the device once, and stores its identity and its channels. It has one connection for all channels, and
/// connects again after each loss of the connection. Run it in a `ServiceGroup`, or with ``start()`` and ``stop()``. An app
/// receives messages from the ``PushChannel``s that ``channel(_:)`` returns.
public final class PushClient: Sendable, Service {
    private enum Running {
        case no
        case inCaller
        /// The task ends with `stop()`, or with the client.
        case byItself(Task<Void, Never>)
        /// The task ends with the last wake, unless the app starts the client before.
        case forWakes(Task<Void, Never>, count: Int)
    }

    let runner: SessionRunner
    let registrar: ClientRegistrar
    /// This device at Apple's push service and at the server.
    public let device: PushDevice
    /// The updates that backends publish for an audience.
    public let updates: PushUpdates
    /// The files that this device sends to other devices or fetches, in a directory of the durable storage.
    public let attachments: AttachmentStore
    /// Calls services of other apps.
    public let serviceClient: ServiceClient
    /// Offers services to other apps.
    public let serviceProvider: ServiceProvider
    private let services: ServiceEngine
    /// The time from a graceful shutdown to the end of iterations outside of the service group. An iteration of a service in the
    /// group ends when that service is shut down. That must happen before this time, because a service that ends earlier is an
    /// error for its group. The client cannot distinguish the two kinds of iterations.
    private let graceOfOutsiders: Duration
    private let loop: ConnectionLoop
    private let running = Mutex(Running.no)

    /// Opens the durable storage. The client sends nothing before it runs.
    ///
    /// Reads and writes a file on the caller's thread. The client also uses a storage that the same app wrote under another
    /// address of the server. It then runs only if the server at the new address reports the same server ID. Until then it
    /// retries, and ``lastFailure`` has the code ``PushError/Code/storageMismatch``.
    /// - Throws: ``PushError`` with ``PushError/Code/configurationInvalid``, or with one of the codes of the storage. A storage
    ///   that cannot be used is not changed.
    public convenience init(configuration: Configuration) throws(PushError) {
        try self.init(configuration: configuration, graceOfOutsiders: .seconds(5))
    }

    init(configuration: Configuration, graceOfOutsiders: Duration) throws(PushError) {
        self.graceOfOutsiders = graceOfOutsiders
        let server = try configuration.checkedServer()
        let tls = try TrustRoots.context(path: configuration.trustRootsPath)
        let store = try ClientStore(directory: AbsolutePath.of(configuration.storageDirectory))
        // Stored paths are compared with this path.
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
            // The runner owns the registrar, which owns the API.
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
            server: ServiceAPI(api: api, requester: runner.requester) { [runner] in runner.session.usableIdentity },
            files: AttachmentStore(directory: storage + "/services", storage: storage, server: transfers),
            inbox: MessageFiles(root: storage + "/Inbox", logger: configuration.logger),
            local: configuration.localDirectory.map { LocalSockets(directory: AbsolutePath.of($0)) },
            logger: configuration.logger)
        serviceClient = ServiceClient(engine: services)
        serviceProvider = ServiceProvider(engine: services)
        runner.listeners.withLock { [services] listeners in
            listeners.scopeChanged = { [weak services] in services?.scopeChanged() }
            listeners.servicesRevisionReported = { [weak services] revision, isRestored in
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

    /// Runs the client until the task is cancelled or its service group shuts down gracefully. The client can run again then.
    ///
    /// The run does not end if the server cannot be reached or refuses this device: see ``lastFailure``. At its end, the client
    /// flushes what it sent, closes the socket, and ends the iterations over ``PushChannel/events``. After a graceful shutdown,
    /// an iteration in a service of the group ends when that service is shut down. All other iterations over
    /// ``PushChannel/events`` and ``availabilityUpdates`` end after five seconds.
    ///
    /// A group shuts down its last service first. If other services are between a service that iterates and the client behind
    /// it, and take longer than five seconds to end, put the client first.
    /// - Throws: ``PushError`` with ``PushError/Code/alreadyRunning``; `CancellationError` if the task was cancelled.
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
        await runner.flush()
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

    /// Runs the client in a task of its own, until ``stop()`` or until the client is released.
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
            await runner.flush()
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
            // The process can end before handlers that ignore the cancellation.
            runner.stopStarts()
        }
    }

    enum WakeStart {
        case began
        /// The client already ran for another wake.
        case joined
        /// The client runs for the app.
        case runs
    }

    /// Runs the client until ``stopForWake(by:)``. The caller must call it unless the result is ``WakeStart/runs``.
    func startForWake() -> WakeStart {
        running.withLock { running in
            switch running {
            case .no: running = .forWakes(begin(), count: 1)
            // The last run is ending.
            case .forWakes(let task, 0): running = .forWakes(begin(after: task), count: 1)
            case .forWakes(let task, let count):
                running = .forWakes(task, count: count + 1)
                return .joined
            case .inCaller, .byItself: return .runs
            }
            return .began
        }
    }

    /// A wake was handled. Ends the run after the last wake, unless the app has started the client.
    ///
    /// A handler can ignore its cancellation. The call waits for the end of the run up to a moment. The next run begins after
    /// that end.
    func stopForWake(by end: ContinuousClock.Instant) async {
        let task = running.withLock { running -> Task<Void, Never>? in
            guard case .forWakes(let task, let count) = running else { return nil }
            running = .forWakes(task, count: max(0, count - 1))
            return count == 1 ? task : nil
        }
        guard let task else { return }
        task.cancel()
        // The wait is cancelled at the moment. The task may ignore its cancellation.
        let hasEnded = await Self.isDone(by: end) { try? await PendingResult<Void>.of { await task.value } }
        guard hasEnded else { return }
        running.withLock { running in
            if case .forWakes(task, count: 0) = running { running = .no }
        }
    }

    /// Ends the run that ``start()`` began, and returns when the connection is closed. Has no effect if the client does not run,
    /// or runs in ``run()``. The client can be started again.
    public func stop() async {
        guard case .byItself(let task) = running.withLock({ $0 }) else { return }
        task.cancel()
        await task.value
        running.withLock { running in
            // Another stop() may have been faster, and a start() may have followed it.
            if case .byItself(let present) = running, present == task { running = .no }
        }
    }

    // MARK: State

    /// Whether messages can arrive now.
    public var availability: Availability { runner.availability.present }

    /// The values of ``availability``, which begin with the present one.
    public var availabilityUpdates: AvailabilityUpdates { AvailabilityUpdates(board: runner.availability) }

    /// The last failure of the client: the reason of a refused registration or of a failed connection, or the address at which
    /// another program than the server answered, with its status.
    /// The first attempt that fails sets it, and it stays after the client has recovered. Nil if no attempt of this process
    /// failed.
    public var lastFailure: PushError? { runner.failures.last }

    /// The ID of this device on the server; nil before the registration. The ID is not a secret.
    public var deviceID: String? { runner.session.registration.identity?.device }

    // MARK: Channels

    /// Returns the channel with an identifier, in its stored state. Performs no I/O.
    /// - Parameter identifier: 1 to 256 bytes of UTF-8, for instance `com.example.app.presence`.
    /// - Throws: ``PushError`` with ``PushError/Code/identifierInvalid``, or with ``PushError/Code/identifierInUse``
    ///   if another ``PushChannel`` with this identifier exists.
    public func channel(_ identifier: String) throws(PushError) -> PushChannel {
        guard (1...Limits.channelNameBytes).contains(identifier.utf8.count) else {
            throw PushError(
                .identifierInvalid,
                "A channel identifier has 1 to \(Limits.channelNameBytes) bytes of UTF-8, not \(identifier.utf8.count)."
            )
        }
        guard runner.reserveIdentifier(identifier) else {
            throw PushError(.identifierInUse, "A channel with the identifier \"\(identifier)\" lives already.")
        }
        return PushChannel(identifier: identifier, runner: runner)
    }

    /// All stored channels, sorted by identifier: channels that were connected and not discarded, also by an earlier version of
    /// the app.
    public var channels: [PushChannelSummary] { runner.summaries }

    /// Ends a channel that no code of the app uses any more, and deletes it with its waiting messages.
    ///
    /// The call is allowed in each state, and for an unknown identifier. An existing ``PushChannel`` reports
    /// ``PushChannelEvent/closed(token:)`` unless it had ended. The server is notified now, or at the next connection. The
    /// senders of the deleted messages receive no other result, because the messages were received.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; nothing has changed then.
    public func discard(_ identifier: String) async throws(PushError) {
        try await runner.perform { session, _ in session.channelDiscarded(identifier) }
    }

    private static let alreadyRunning = PushError(
        .alreadyRunning, "The client runs already; run() and start() need a client that is stopped.")
}
