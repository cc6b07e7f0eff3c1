import NIOCore
import NIOSSL

/// The client's transport over SwiftNIO. TLS is NIOSSL's; who opens the TCP connection is ``Sockets``' business.
struct NIOTransport: ClientTransport {
    let tls: NIOSSLContext
    /// From name resolution until the upgrade is accepted, or the answer is there.
    let timeout: Duration
    var sockets = Sockets.platform

    /// Connects, and has `begin` do what follows on a channel that has TLS, where the address wants it, and nothing else.
    ///
    /// - Parameter patience: How much longer what follows may take than the rest together.
    func open<Value: Sendable>(
        _ address: WebAddress, patience: Duration = .zero, _ progress: ConnectProgress,
        _ begin: @escaping @Sendable (any NIOCore.Channel) throws -> EventLoopFuture<Value>
    ) async throws -> Value {
        let limit = TimeAmount(timeout)
        let attempt: EventLoopFuture<Value> = sockets.bootstrap()
            .connectTimeout(limit)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                progress.began(on: channel)
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .connect(host: address.host, port: address.port)
            .flatMap { channel in
                progress.connected()
                return channel.eventLoop.flatSubmit {
                    do {
                        try secure(channel, to: address)
                        return try begin(channel)
                    } catch {
                        return channel.eventLoop.makeFailedFuture(error)
                    }
                }
            }
        // The timer covers TLS and what follows as well as the connection.
        let timer = sockets.group.any().scheduleTask(in: TimeAmount(timeout + patience)) {
            progress.abandon(TransportFault(.timeOut, nil))
        }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            try await progress.first(of: attempt, on: sockets.group.any())
        } onCancel: {
            progress.abandon(CancellationError())
        }
    }

    private func secure(_ channel: any NIOCore.Channel, to address: WebAddress) throws {
        guard address.isSecure else { return }
        // Without a name, the certificate must be made out to the address itself.
        let isIPAddress = (try? SocketAddress(ipAddress: address.host, port: address.port)) != nil
        try channel.pipeline.syncOperations.addHandler(
            NIOSSLClientHandler(context: tls, serverHostname: isIPAddress ? nil : address.host))
    }

    /// What an attempt that failed says of the server.
    func fault(_ error: any Error, _ progress: ConnectProgress) -> TransportFault {
        if let fault = error as? TransportFault { return fault }
        return TransportFault(progress.hasConnected ? .reachedServer : .unreachable, error)
    }
}
