import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Listens on the ports, and adds the handlers of each connection.
final class SimulatorListener: Sendable {
    private let hub: Hub
    private let authority: CertificateAuthority
    private let hosts: [String]
    private let contexts = Mutex<[Conditions.Certificate: NIOSSLContext]>([:])
    private let channels = Mutex<[ObjectIdentifier: any Channel]>([:])

    init(hub: Hub, authority: CertificateAuthority, hosts: [String]) {
        self.hub = hub
        self.authority = authority
        self.hosts = hosts
    }

    /// Starts to listen, and returns the listening socket.
    func listen(on port: Port, group: any EventLoopGroup) async throws(SimulatorError) -> any Channel {
        if port.isSecure { _ = try context(.good) }
        do {
            return try await ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 1024)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try self.welcome(channel, port) }
                }
                .bind(host: port.host, port: port.port).get()
        } catch {
            throw SimulatorError(error, listeningOn: port.host, port.port)
        }
    }

    private func welcome(_ channel: any Channel, _ port: Port) throws {
        let (report, conditions) = hub.opened(in: port.environment)
        let pipeline = channel.pipeline.syncOperations
        remember(channel)
        switch conditions.welcome {
        case .silent: return try pipeline.addHandler(SilentHandler())
        case .closed: return channel.close(promise: nil)
        case .served: break
        }
        let transport = TransportHandler(roundTrip: conditions.roundTrip)
        let certificate = PeerCertificate()
        try pipeline.addHandler(transport)
        if port.isSecure {
            let authority = authority
            let shown = NIOLoopBound(certificate, eventLoop: channel.eventLoop)
            try pipeline.addHandler(
                NIOSSLServerHandler(context: try context(conditions.certificate)) { chain, promise in
                    let der = try? chain.first?.toDERBytes()
                    shown.value.shown = der.map { authority.clientCertificate(der: $0) } ?? .unreadable
                    promise.succeed(.certificateVerified)
                })
        }
        try pipeline.addHandler(
            SimulatorConnectionHandler(
                hub: hub, transport: transport, services: port.services, isSecure: port.isSecure, certificate: certificate,
                report: report, conditions: conditions))
    }

    /// Returns the TLS context for a kind of certificate. The certificates are made when they are first needed.
    private func context(_ kind: Conditions.Certificate) throws(SimulatorError) -> NIOSSLContext {
        do {
            return try contexts.withLock { contexts in
                if let context = contexts[kind] { return context }
                let context = try authority.serverContext(kind, hosts: hosts, now: Date())
                contexts[kind] = context
                return context
            }
        } catch {
            throw SimulatorError(.certificateFailed, "The certificate cannot be created.", cause: error)
        }
    }

    private func remember(_ channel: any Channel) {
        let key = ObjectIdentifier(channel)
        channels.withLock { $0[key] = channel }
        channel.closeFuture.whenComplete { _ in self.forget(key) }
    }

    private func forget(_ key: ObjectIdentifier) { _ = channels.withLock { $0.removeValue(forKey: key) } }

    /// Ends every connection, and returns when all are closed.
    func closeConnections() async {
        let open = channels.withLock { Array($0.values) }
        for channel in open {
            channel.pipeline.fireUserInboundEventTriggered(SimulatorConnectionHandler.Shutdown())
            channel.close(promise: nil)
            // TLS waits until the other side ends it, and not every client does.
            channel.eventLoop.scheduleTask(in: .milliseconds(500)) {
                channel.pipeline.fireUserInboundEventTriggered(SimulatorConnectionHandler.Cut())
            }
        }
        for channel in open { _ = try? await channel.closeFuture.get() }
    }

    /// Closes the socket of every open connection without an end of TLS.
    func cutConnections() {
        for channel in channels.withLock({ Array($0.values) }) {
            channel.pipeline.fireUserInboundEventTriggered(SimulatorConnectionHandler.Cut())
        }
    }
}
