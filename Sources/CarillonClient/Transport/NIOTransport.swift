import NIOCore
import NIOSSL

/// The client's transport over SwiftNIO. NIOSSL adds TLS, and ``Sockets`` opens the TCP connections.
struct NIOTransport: ClientTransport {
    let tls: NIOSSLContext
    /// The time limit from name resolution until the upgrade is accepted, or the response has arrived.
    let timeout: Duration
    var sockets = Sockets.platform

    /// Connects, and runs `begin` on a channel that has only TLS, or no handlers if the address does not use TLS.
    ///
    /// - Parameter patience: The additional time for `begin`, beyond the time limit.
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
        // The timer covers TLS and `begin` as well as the connection.
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
        // If the address contains an IP address instead of a name, the certificate must contain this IP address.
        let isIPAddress = (try? SocketAddress(ipAddress: address.host, port: address.port)) != nil
        try channel.pipeline.syncOperations.addHandler(
            NIOSSLClientHandler(context: tls, serverHostname: isIPAddress ? nil : address.host))
    }

    /// Returns the fault for the error of a failed attempt.
    func fault(_ error: any Error, _ progress: ConnectProgress) -> TransportFault {
        if let fault = error as? TransportFault { return fault }
        return TransportFault(progress.hasConnected ? .reachedServer : .unreachable, error)
    }
}
