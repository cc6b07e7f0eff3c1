import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// An Apple push notification service of your own, for tests.
///
/// It speaks real HTTP/2 over TLS, judges requests as strictly as the real service does, remembers what each device would
/// have shown, and misbehaves on demand: see ``faults`` and ``conditions``. Start it with ``start()``, or for the length
/// of a closure with ``withSimulator(_:_:)``. Nothing here knows any client.
public final class APNsSimulator: Sendable {
    private struct Running: Sendable {
        var group: MultiThreadedEventLoopGroup
        var listener: SimulatorListener
        var sockets: [any Channel] = []
        var control: (any Channel)?
    }

    private enum Phase: Sendable {
        case made
        case starting
        case running(Running)
        case stopped
    }

    let hub: Hub
    let configuration: Configuration
    private let authority: CertificateAuthority
    private let phase = Mutex(Phase.made)
    /// The key that was made, or found in the data directory; it is known to the service.
    public let signingKey: SigningKey

    /// Makes the authority and the signing key, or reads them from the data directory; nothing is listened on yet.
    /// - Throws: ``SimulatorError``.
    public init(_ configuration: Configuration = Configuration()) throws(SimulatorError) {
        self.configuration = configuration
        authority = try CertificateAuthority.kept(in: configuration.dataDirectory, now: Date())
        signingKey = try SigningKeyFile.kept(in: configuration.dataDirectory)
        try Self.check(configuration.conditions)
        try Self.check(configuration.faults)
        var service = PushService(seed: configuration.seed)
        service.rules = configuration.rules
        try service.accounts.add(signingKey)
        var plan = FaultPlan(seed: configuration.seed)
        plan.rules = configuration.faults
        hub = Hub(
            Hub.State(
                service: service,
                log: RequestLog(capacity: configuration.recordedRequests, recordsBodies: configuration.recordsBodies),
                plan: plan, conditions: configuration.conditions))
    }

    /// What clients must trust: the certificate of the simulator's authority, in PEM.
    public var trustRoot: String { authority.pem }

    // MARK: Running

    /// Listens on every port.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/addressUnavailable``, or with
    ///   ``SimulatorError/Code/alreadyStarted``: a simulator starts once.
    public func start() async throws(SimulatorError) {
        try phase.withLock { phase throws(SimulatorError) in
            guard case .made = phase else {
                throw SimulatorError(.alreadyStarted, "A simulator can be started only once; create another one.")
            }
            phase = .starting
        }
        let hosts =
            ["localhost", "127.0.0.1", "::1"] + AppleHosts.all + configuration.ports.map(\.host) + configuration.extraHosts
        let group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, configuration.eventLoops))
        var running = Running(
            group: group, listener: SimulatorListener(hub: hub, authority: authority, hosts: Array(Set(hosts)).sorted()))
        do {
            for port in configuration.ports {
                running.sockets.append(try await running.listener.listen(on: port, group: group))
            }
            if let address = configuration.control {
                running.control = try await ControlListener.listen(on: address, simulator: self, group: group)
            }
        } catch {
            await end(running)
            throw error
        }
        let started = running
        phase.withLock { $0 = .running(started) }
    }

    /// Says goodbye on every connection, and returns when all is closed. What was received can still be asked for.
    public func stop() async {
        let running: Running? = phase.withLock { phase in
            defer { phase = .stopped }
            if case .running(let running) = phase { return running }
            return nil
        }
        if let running { await end(running) }
    }

    private func end(_ running: Running) async {
        for socket in running.sockets + [running.control].compactMap({ $0 }) { _ = try? await socket.close() }
        await running.listener.closeConnections()
        _ = try? await running.group.shutdownGracefully()
        phase.withLock { $0 = .stopped }
    }

    /// Runs a simulator for the length of a closure.
    /// - Throws: ``SimulatorError`` when it cannot start, or what the closure throws.
    public static func withSimulator<Result>(
        _ configuration: Configuration = Configuration(), _ body: (APNsSimulator) async throws -> Result
    ) async throws -> Result {
        let simulator = try APNsSimulator(configuration)
        try await simulator.start()
        do {
            let result = try await body(simulator)
            await simulator.stop()
            return result
        } catch {
            await simulator.stop()
            throw error
        }
    }

    // MARK: Addresses

    private var running: Running? {
        phase.withLock { phase in
            if case .running(let running) = phase { return running }
            return nil
        }
    }

    /// The configured ports with the numbers that they got; empty while it does not run.
    public var ports: [Port] {
        guard let running else { return [] }
        return zip(configuration.ports, running.sockets).map { port, socket in
            var port = port
            port.port = socket.localAddress?.port ?? port.port
            return port
        }
    }

    /// The first port that offers a service in an environment; nil when there is none, or while it does not run.
    public func port(_ service: Port.Service = .push, _ environment: Environment = .sandbox) -> Int? {
        ports.first { $0.service == service && $0.environment == environment }?.port
    }

    /// The address of the page and the JSON API.
    public var controlHost: String? { configuration.control?.host }

    /// The port of the page and the JSON API.
    public var controlPort: Int? { running?.control?.localAddress?.port }

    // MARK: Connections

    /// Breaks every connection that is open, without a word.
    public func cutConnections() { running?.listener.cutConnections() }

    /// What clients did on each connection, the oldest first; the newest thousand.
    public var connections: [ConnectionReport] {
        hub.withState { $0.connections.values.sorted { $0.number < $1.number } }
    }

    /// Makes a client certificate of the simulator's authority, as Apple gives out for pushes.
    /// - Parameters:
    ///   - topics: what it is for, suffixes included; the first is the app's bundle identifier.
    ///   - environments: where it is valid.
    ///   - days: when it ends, counted from now; a negative number for one that has ended.
    ///   - keyType: what its key is.
    public func makeClientIdentity(
        topics: [String], environments: Set<Environment> = [.sandbox, .production], days: Int = 365,
        keyType: KeyType = .p256
    ) throws(SimulatorError) -> ClientIdentity {
        let end = Date() + Double(days) * 86_400
        do {
            return try authority.makeClientIdentity(
                topics: topics, environments: environments, from: min(Date(), end) - 86_400, until: end,
                keyType: keyType)
        } catch {
            throw SimulatorError(.certificateFailed, "The certificate cannot be created.", cause: error)
        }
    }
}
