import NIOCore
import NIOPosix

/// The event loop, on one thread, that makes the whole load.
///
/// All objects of `Load/` are made, called and released only on this loop. Their classes can therefore be
/// `@unchecked Sendable`.
enum LoadLoop {
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    static let loop: any EventLoop = group.next()

    /// Runs a closure on the loop, and waits for its future.
    static func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> EventLoopFuture<Value>
    ) async throws -> Value {
        try await loop.flatSubmit {
            do {
                return try work()
            } catch {
                return loop.makeFailedFuture(error)
            }
        }.get()
    }

    static func connect(
        _ address: SocketAddress, _ handler: some ChannelInboundHandler & Sendable
    ) -> EventLoopFuture<any Channel> {
        ClientBootstrap(group: loop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 8192))
            .connectTimeout(.seconds(20))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .connect(to: address)
    }
}

/// Returns the nanoseconds of the monotonic clock.
func nanoseconds() -> UInt64 { NIODeadline.now().uptimeNanoseconds }
