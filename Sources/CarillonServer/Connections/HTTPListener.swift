import CarillonCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle
import Synchronization

/// Accepts connections until the server stops, and then waits until the last connection is closed.
struct HTTPListener: Service {
    let group: any EventLoopGroup
    let places: [ListenPlace]
    let connections: HTTPConnectionHandler.Shared
    let loops: [ObjectIdentifier: LoopContext]
    let readiness: Readiness
    let retry: ListenerRetry.Limits
    let logger: Logger
    /// Ends when all other listeners are open. A client that can connect to this listener therefore finds a complete server.
    let others: AsyncStream<Void>
    /// Called once, when the server listens on all addresses.
    let onListening: @Sendable (any NIOCore.Channel) async -> Void
    private let openConnections = OpenConnections()

    func run() async throws {
        for await _ in others {}
        try Task.checkCancellation()
        try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                try await listen()
                // Ends when the last connection is closed, or when the caller cancels the task.
                await openConnections.allClosed()
            } onGracefulShutdown: {
                openConnections.stop()
            }
        } onCancel: {
            openConnections.stop()
        }
    }

    /// Listens on all addresses. Returns when the server stops.
    private func listen() async throws {
        let unopened = Unopened(places.count)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for place in places {
                group.addTask {
                    do {
                        try await listen(at: place) { listener in
                            if unopened.wasLast() { await onListening(listener) }
                        }
                    } catch {
                        // The listeners of the other addresses end as well.
                        openConnections.stop()
                        throw error
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// The number of addresses without an open listener.
    private final class Unopened: Sendable {
        private let count: Atomic<Int>

        init(_ count: Int) { self.count = Atomic(count) }

        /// Counts an opened listener. Returns whether it was the last.
        func wasLast() -> Bool { count.wrappingSubtract(1, ordering: .relaxed).newValue == 0 }
    }

    /// - Parameter onFirst: Called with the first listener of the address.
    private func listen(at place: ListenPlace, onFirst: (any NIOCore.Channel) async -> Void) async throws {
        var place = place
        var isFirst = true
        var file: UnixSocketFile?
        defer { file?.remove() }
        let keeper = ListenerKeeper(place: place, limits: retry, readiness: readiness, logger: logger)
        try await keeper.run(until: { openConnections.isStopping }) { opened in
            let listener: any NIOCore.Channel
            switch place {
            case .address(let host, let port):
                listener = try await ListenFault.naming(place) {
                    try await bootstrap(isTCP: true).bind(host: host, port: port).get()
                }
                // If the port was 0, the system chose one.
                place = .address(host: host, port: listener.localAddress?.port ?? port)
            case .unix(let path):
                let made = try UnixSocketFile.make(path)
                file = made.file
                listener = try await adopt(made.descriptor, isTCP: false, of: place)
            case .inherited(let socket):
                // NIO closes the descriptor together with the listener, but another listener can need the descriptor.
                guard let descriptor = SocketDescriptor.duplicate(socket.descriptor) else {
                    throw ListenFault(address: place.description, reason: "the process has no more file descriptors")
                }
                listener = try await adopt(descriptor, isTCP: socket.isTCP, of: place)
            }
            openConnections.add(listener)
            opened()
            if isFirst { await onFirst(listener) }
            isFirst = false
            try await listener.closeFuture.get()
        }
    }

    /// Listens on a bound socket.
    private func adopt(_ descriptor: CInt, isTCP: Bool, of place: ListenPlace) async throws -> any NIOCore.Channel {
        let listener = try await ListenFault.naming(place) {
            try await bootstrap(isTCP: isTCP).withBoundSocket(descriptor).get()
        }
        // NIO sets a backlog of its own for a bound socket.
        SocketDescriptor.setBacklog(Self.backlog, of: descriptor)
        return listener
    }

    private static let backlog: CInt = 4096

    private func bootstrap(isTCP: Bool) -> ServerBootstrap {
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: Self.backlog)
            .serverChannelInitializer { [logger, openConnections] channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(AcceptPause(logger: logger))
                    try pipeline.addHandler(OpenConnections.Collector(openConnections))
                }
            }
            .childChannelOption(.maxMessagesPerRead, value: HTTPReceiveAllocator.readsAtOnce)
            .childChannelOption(.recvAllocator, value: HTTPReceiveAllocator())
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer(setUp)
        guard isTCP else { return bootstrap }
        return
            bootstrap
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.tcpOption(Self.unsentLimit), value: ConnectionLimits.unsentBytes)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
    }

    /// Limits the unsent data in the kernel (`TCP_NOTSENT_LOWAT`). Without this limit, megabytes of unread data could not be
    /// counted as waiting. Connections inherit the option from the listening socket.
    private static var unsentLimit: NIOBSDSocket.Option {
        #if os(Linux)
            NIOBSDSocket.Option(rawValue: 25)
        #else
            NIOBSDSocket.Option(rawValue: 0x201)
        #endif
    }

    @Sendable private func setUp(_ channel: any NIOCore.Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            guard let loop = loops[ObjectIdentifier(channel.eventLoop)] else {
                preconditionFailure("a connection is on an event loop of the server's group")
            }
            var limits = NIOHTTPDecoderLimitConfiguration()
            limits.maxHeaderListSize = ConnectionLimits.headBytes
            limits.maxHeaderFieldSize = ConnectionLimits.headBytes
            limits.maxHeaderFieldCount = ConnectionLimits.headFields
            let counter = InboundByteCounter()
            try channel.pipeline.syncOperations.addHandlers([
                counter,
                HTTPResponseEncoder(),
                ByteToMessageHandler(
                    HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits)),
                HTTPConnectionHandler(shared: connections, loop: loop, eventLoop: channel.eventLoop, counter: counter),
            ])
            // The stop event can have arrived before the connection had a handler for it.
            if openConnections.isStopping { channel.close(promise: nil) }
        }
    }
}
