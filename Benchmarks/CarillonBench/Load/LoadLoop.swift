import NIOCore
import NIOPosix

/// The one event loop, on one thread, on which the whole load is made.
///
/// Everything in `Load/` lives on it. That is what lets those classes be `@unchecked Sendable`: they are made, called
/// and let go there.
enum LoadLoop {
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    static let loop: any EventLoop = group.next()

    /// Does something on the loop, and waits for what it promises.
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

/// Nanoseconds of the monotonic clock.
func nanoseconds() -> UInt64 { NIODeadline.now().uptimeNanoseconds }
