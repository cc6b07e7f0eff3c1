import NIOCore
import NIOPosix
import Synchronization

/// A host that takes connections and says nothing, not even for TLS.
final class SilentListener: Sendable {
    private let listener: any NIOCore.Channel
    private let taken = Counted()

    final class Counted: Sendable {
        let count = Mutex(0)
    }

    var port: Int { listener.localAddress?.port ?? 0 }
    var accepted: Int { taken.count.withLock { $0 } }

    init() async throws {
        let taken = taken
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                taken.count.withLock { $0 += 1 }
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func close() async throws { try await listener.close() }
}
