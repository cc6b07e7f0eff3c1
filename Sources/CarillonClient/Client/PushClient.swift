import CarillonWire
import Logging
import NIOSSL
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
    }

    private let runner: SessionRunner
    private let loop: ConnectionLoop
    private let running = Mutex(Running.no)

    /// Opens the durable storage; nothing is sent before the client runs.
    ///
    /// Reads and writes a file on the caller's thread.
    /// - Throws: ``PushError`` with ``PushError/Code/configurationInvalid``, or with one of the storage's codes. A
    ///   storage that cannot be used is left as it is.
    public init(configuration: Configuration) throws(PushError) {
        let server = try configuration.checkedServer()
        let tls = try TrustRoots.configuration(path: configuration.trustRootsPath)
        let context: NIOSSLContext
        do {
            context = try NIOSSLContext(configuration: tls)
        } catch {
            throw PushError(.configurationInvalid, "trustRootsPath: the certificates cannot be used.", cause: error)
        }
        let store = try ClientStore(directory: configuration.storageDirectory)
        let stored = try store.load(server: server.text, app: configuration.app)
        let settings = ClientSession.Settings(backOff: configuration.backOff, keepAlive: configuration.keepAlive)
        runner = SessionRunner(
            store: store, session: ClientSession(settings, restoring: stored), logger: configuration.logger)
        loop = ConnectionLoop(
            runner: runner,
            registrar: DeviceRegistrar(
                server: server, app: configuration.app, clientKey: configuration.clientKey, tls: tls,
                timeout: configuration.connectTimeout),
            transport: WebSocketTransport(tls: context, timeout: configuration.connectTimeout),
            failures: FailureNote())
    }

    deinit {
        if case .byItself(let task) = running.withLock({ $0 }) { task.cancel() }
    }

    // MARK: Running

    /// Keeps the connection until the task is cancelled or its service group shuts down gracefully.
    ///
    /// It does not end because the server is away, or refuses this device: see ``lastFailure``. When it ends, what was
    /// sent is flushed, the socket is closed, and iterations over ``PushChannel/events`` end. It can be run again.
    /// - Throws: ``PushError`` with ``PushError/Code/alreadyRunning``; `CancellationError` when the task was cancelled.
    public func run() async throws {
        try running.withLock { running throws(PushError) in
            guard case .no = running else { throw Self.alreadyRunning }
            running = .inCaller
        }
        defer { running.withLock { $0 = .no } }
        let loop = loop
        await cancelWhenGracefulShutdown { await loop.run() }
        try Task.checkCancellation()
    }

    /// Runs the client by itself, until ``stop()`` or until it is released.
    /// - Throws: ``PushError`` with ``PushError/Code/alreadyRunning``.
    public func start() throws(PushError) {
        try running.withLock { running throws(PushError) in
            guard case .no = running else { throw Self.alreadyRunning }
            let loop = loop
            // Ended by stop() or deinit.
            running = .byItself(Task { await loop.run() })
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

    /// The last thing that kept the client from its work: why a registration was refused, why there was no connection.
    /// It stays after the client has recovered; nil when nothing ever went wrong in this process.
    public var lastFailure: PushError? { loop.failures.last }

    /// The server's name for this device; nil before registration. It is not a secret.
    public var deviceID: String? { runner.deviceID }

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

    private static let alreadyRunning = PushError(
        .alreadyRunning, "The client runs already; run() and start() need a client that is stopped.")
}
