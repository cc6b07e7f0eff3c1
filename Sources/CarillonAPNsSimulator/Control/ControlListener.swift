import NIOCore
import NIOHTTP1
import NIOPosix

/// Serves the page and the JSON API over plain HTTP/1.1.
enum ControlListener {
    static func listen(
        on address: APNsSimulator.ControlAddress, simulator: APNsSimulator, group: any EventLoopGroup
    ) async throws(SimulatorError) -> any Channel {
        do {
            // The simulator refers to the socket, so the socket must not refer to the simulator.
            let simulator = WeakSimulator(simulator)
            return try await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: true)
                        try channel.pipeline.syncOperations.addHandler(ControlHandler(simulator: simulator))
                    }
                }
                .bind(host: address.host, port: address.port).get()
        } catch {
            throw SimulatorError(error, listeningOn: address.host, address.port)
        }
    }
}

struct WeakSimulator: Sendable {
    private(set) weak var value: APNsSimulator?

    init(_ value: APNsSimulator) { self.value = value }
}
