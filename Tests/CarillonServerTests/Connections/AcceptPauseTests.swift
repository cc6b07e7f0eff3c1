import Foundation
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct AcceptPauseTests {
    private static let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    /// A true listener, and a stream with an element for each connection that it accepted.
    private func listen(
        pause: TimeAmount, isReserveReached: @escaping @Sendable () -> Bool = { false },
        _ body: (any NIOCore.Channel, AsyncStream<Void>) async throws -> Void
    ) async throws {
        let (accepted, output) = AsyncStream.makeStream(of: Void.self)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.maxMessagesPerRead, value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptPause(pause: pause, logger: Self.logger, isReserveReached: isReserveReached))
                }
            }
            .childChannelInitializer { channel in
                output.yield()
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await body(listener, accepted)
        try await listener.close()
    }

    private func connect(to listener: any NIOCore.Channel) async throws {
        let peer = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(to: try #require(listener.localAddress)).get()
        peer.closeFuture.whenComplete { _ in }
    }

    /// Answers whether the listener still reads right after the faults.
    private func fail(_ listener: any NIOCore.Channel, _ codes: CInt...) async throws -> Bool {
        try await listener.eventLoop.submit {
            for code in codes { listener.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept")) }
            return try listener.syncOptions?.getOption(.autoRead) ?? true
        }.get()
    }

    @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func `without files or memory the listener waits, and retries`(code: CInt) async throws {
        try await listen(pause: .milliseconds(50)) { listener, accepted in
            for _ in 0..<2 {
                let clock = ContinuousClock()
                let begin = clock.now
                #expect(try await !fail(listener, code, code))
                try await connect(to: listener)
                for await _ in accepted { break }
                #expect(clock.now - begin >= .milliseconds(50))
            }
        }
    }

    @Test func `the last files are for no connection`() async throws {
        let looks = Mutex(0)
        // Reached by the first connection, and for two attempts after it.
        let isReached: @Sendable () -> Bool = {
            looks.withLock {
                $0 += 1; return $0 <= 3
            }
        }
        try await listen(pause: .milliseconds(50), isReserveReached: isReached) { listener, accepted in
            var connections = accepted.makeAsyncIterator()
            let clock = ContinuousClock()
            let begin = clock.now
            try await connect(to: listener)
            await connections.next()
            try await connect(to: listener)
            await connections.next()
            #expect(clock.now - begin >= .milliseconds(140))
            #expect(looks.withLock { $0 } >= 4)
        }
    }

    @Test func `another fault begins no pause`() async throws {
        try await listen(pause: .hours(1)) { listener, accepted in
            #expect(try await fail(listener, ECONNABORTED, EPROTO))
            try await connect(to: listener)
            for await _ in accepted { break }
        }
    }

    @Test(arguments: [
        (EMFILE, false), (ENFILE, false), (ENOBUFS, false), (ENOMEM, false), (ECONNABORTED, false), (EPROTO, true),
        (EHOSTUNREACH, true),
    ])
    func `handlers behind it receive only errors that close a listener`(code: CInt, isPassed: Bool) throws {
        let channel = EmbeddedChannel(handler: AcceptPause(logger: Self.logger, isReserveReached: { false }))
        channel.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept"))
        var passed: (any Error)?
        do { try channel.throwIfErrorCaught() } catch { passed = error }
        #expect((passed != nil) == isPassed)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }
}
