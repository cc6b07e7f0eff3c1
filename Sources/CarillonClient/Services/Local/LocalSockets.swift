import CarillonWire
import NIOCore
import NIOPosix
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Exchanges service events between apps of one machine. Each device listens on a Unix-domain socket in a directory that only one
/// user of the machine can access. A connection carries one event, after its length in four bytes, big endian. The response is
/// one byte: 1 when the recipient has stored the event.
struct LocalSockets: Sendable {
    let directory: String

    /// The time limit of a connection, from its opening until its event is received.
    var timeout = TimeAmount.seconds(5)
    static let mostAtOnce = 16
    /// Larger events do not fit into the server's frames either.
    static let mostBytes = Limits.clientFrameBytes
    /// The maximum length of a path in `sockaddr_un`, with a margin for every system.
    private static let longestPath = 100

    func path(of device: String) -> String { "\(directory)/\(device).sock" }

    func hasSocket(_ device: String) -> Bool { FileManager.default.fileExists(atPath: path(of: device)) }

    func remove(_ device: String) { try? FileManager.default.removeItem(atPath: path(of: device)) }

    // MARK: Listening

    /// Listens for events to a device until the returned channel is closed.
    ///
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable`` if the directory is not only this user's, or if the
    ///   socket cannot be created.
    func listen(
        as device: String, _ take: @escaping @Sendable ([UInt8]) async -> Bool
    ) async throws -> any NIOCore.Channel {
        try makeDirectory()
        let path = path(of: device)
        guard path.utf8.count <= Self.longestPath else { throw Self.fault("The path \(path) is too long for a socket") }
        let count = ConnectionCount()
        do {
            return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(ReceivingHandler(count, timeout: timeout, take))
                    }
                }
                // A process that was killed leaves its socket file. No other process uses the path of this device.
                .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        } catch {
            throw Self.fault("The socket \(path) cannot be made", error)
        }
    }

    private func makeDirectory() throws(PushError) {
        var status = stat()
        if lstat(directory, &status) != 0 { _ = mkdir(directory, 0o700) }
        guard lstat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_mode & 0o077 == 0,
            status.st_uid == getuid()
        else { throw Self.fault("The directory \(directory) is not this user's alone (0700)") }
    }

    private static func fault(_ text: String, _ cause: (any Error)? = nil) -> PushError {
        PushError(.storageUnavailable, text + ".", cause: cause)
    }

    // MARK: Sending

    /// Returns whether the recipient has stored the event.
    func send(_ event: [UInt8], to device: String) async -> Bool {
        guard event.count <= Self.mostBytes, hasSocket(device) else { return false }
        let answer: EventLoopFuture<Bool> = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(timeout)
            .connect(unixDomainSocketPath: path(of: device))
            .flatMap { channel in
                channel.eventLoop.flatSubmit {
                    let answer = channel.eventLoop.makePromise(of: Bool.self)
                    do {
                        guard LocalPeer.isSameUser(channel) else { throw ChannelError.operationUnsupported }
                        try channel.pipeline.syncOperations.addHandler(AnswerHandler(answer))
                    } catch {
                        answer.fail(error)
                        channel.close(promise: nil)
                        return answer.futureResult
                    }
                    var frame = channel.allocator.buffer(capacity: event.count + 4)
                    frame.writeInteger(UInt32(event.count))
                    frame.writeBytes(event)
                    channel.writeAndFlush(frame).cascadeFailure(to: answer)
                    channel.eventLoop.scheduleTask(in: timeout) { channel.close(promise: nil) }
                    return answer.futureResult
                }
            }
        return (try? await answer.get()) ?? false
    }
}

/// Whether the other end of a socket belongs to the same user of the machine.
enum LocalPeer {
    static func isSameUser(_ channel: any NIOCore.Channel) -> Bool {
        guard let options = channel as? any SocketOptionProvider else { return false }
        #if canImport(Darwin)
            let peer: EventLoopFuture<xucred> = options.unsafeGetSocketOption(
                level: .init(rawValue: SOL_LOCAL), name: .init(rawValue: LOCAL_PEERCRED))
            let uid = peer.map(\.cr_uid)
        #else
            // Linux's `struct ucred` (pid, uid, gid), which Glibc declares only with GNU extensions.
            let peer: EventLoopFuture<(Int32, uid_t, gid_t)> = options.unsafeGetSocketOption(
                level: .socket, name: .init(rawValue: SO_PEERCRED))
            let uid = peer.map(\.1)
        #endif
        // On the channel's own event loop the future is completed at once.
        let found = NIOLoopBoundBox<uid_t?>(nil, eventLoop: channel.eventLoop)
        uid.whenSuccess { found.value = $0 }
        return found.value == getuid()
    }
}

private final class ConnectionCount: Sendable {
    private let count = Mutex(0)

    func enter() -> Bool {
        count.withLock { count in
            guard count < LocalSockets.mostAtOnce else { return false }
            count += 1
            return true
        }
    }

    func leave() { count.withLock { $0 -= 1 } }
}

/// Reads one event, passes it to the closure, and responds.
private final class ReceivingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let count: ConnectionCount
    private let timeout: TimeAmount
    private let take: @Sendable ([UInt8]) async -> Bool
    private var buffer = ByteBuffer()
    private var isCounted = false
    private var isTaken = false

    init(_ count: ConnectionCount, timeout: TimeAmount, _ take: @escaping @Sendable ([UInt8]) async -> Bool) {
        self.count = count
        self.timeout = timeout
        self.take = take
    }

    func channelActive(context: ChannelHandlerContext) {
        isCounted = count.enter()
        guard isCounted, LocalPeer.isSameUser(context.channel) else { return context.close(promise: nil) }
        let channel = context.channel
        context.eventLoop.scheduleTask(in: timeout) { channel.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if isCounted { count.leave() }
        isCounted = false
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        buffer.writeImmutableBuffer(Self.unwrapInboundIn(data))
        guard let length = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) else { return }
        guard !isTaken, Int(length) <= LocalSockets.mostBytes, buffer.readableBytes <= Int(length) + 4 else {
            return context.close(promise: nil)
        }
        guard buffer.readableBytes == Int(length) + 4 else { return }
        isTaken = true
        let bytes = Array(buffer.readableBytesView.dropFirst(4))
        let (take, channel) = (take, context.channel)
        // The task ends with one transaction of the storage.
        Task {
            let answer = channel.allocator.buffer(bytes: [await take(bytes) ? 1 : 0])
            channel.writeAndFlush(answer).whenComplete { _ in channel.close(promise: nil) }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

private final class AnswerHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let answer: EventLoopPromise<Bool>

    init(_ answer: EventLoopPromise<Bool>) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        answer.succeed(Self.unwrapInboundIn(data).readableBytesView.first == 1)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { answer.fail(ChannelError.inputClosed) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        answer.fail(error)
        context.close(promise: nil)
    }
}
