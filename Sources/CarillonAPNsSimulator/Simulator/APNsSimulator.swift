import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// A local simulator of the Apple Push Notification service (APNs), for tests.
///
/// The simulator uses HTTP/2 over TLS, checks requests as strictly as APNs does, records the notifications that each device
/// would show, and can simulate faults: see ``faults`` and ``conditions``. Start it with ``start()``, or for the duration of
/// a closure with ``withSimulator(_:_:)``. It does not depend on a particular client.
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
    /// The signing key that was generated, or read from the data directory. The simulated service accepts it.
    public let signingKey: SigningKey

    /// Makes the authority and the signing key, or reads them from the data directory. The simulator does not listen yet.
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

    /// The certificate of the simulator's authority in PEM form, which clients must trust.
    public var trustRoot: String { authority.pem }

    // MARK: Running

    /// Starts to listen on every port.
    /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/addressUnavailable``, or with
    ///   ``SimulatorError/Code/alreadyStarted``, because a simulator can be started only once.
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

    /// Ends every connection, and returns when all are closed. The recorded requests can still be read.
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

    /// Runs a simulator for the duration of a closure.
    /// - Throws: ``SimulatorError`` if the simulator cannot start, or the error of the closure.
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

    /// The configured ports with their actual numbers; empty while the simulator does not run.
    public var ports: [Port] {
        guard let running else { return [] }
        return zip(configuration.ports, running.sockets).map { port, socket in
            var port = port
            port.port = socket.localAddress?.port ?? port.port
            return port
        }
    }

    /// Returns the first port with a service in an environment; nil if no such port exists, or while the simulator does not run.
    public func port(_ service: Port.Service = .push, _ environment: Environment = .sandbox) -> Int? {
        ports.first { $0.service == service && $0.environment == environment }?.port
    }

    /// The host of the page and the JSON API.
    public var controlHost: String? { configuration.control?.host }

    /// The port of the page and the JSON API.
    public var controlPort: Int? { running?.control?.localAddress?.port }

    // MARK: Connections

    /// Closes the socket of every open connection without an end of TLS.
    public func cutConnections() { running?.listener.cutConnections() }

    /// The actions of clients on the newest thousand connections, the oldest first.
    public var connections: [ConnectionReport] {
        hub.withState { $0.connections.values.sorted { $0.number < $1.number } }
    }

    /// Makes a push certificate, as Apple issues it, signed by the simulator's authority.
    /// - Parameters:
    ///   - topics: the APNs topics of the certificate, including suffixes. The first is the app's bundle identifier.
    ///   - environments: the environments for which the certificate is valid.
    ///   - days: the number of days until the certificate expires; negative for an expired certificate.
    ///   - keyType: the type of the key.
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
