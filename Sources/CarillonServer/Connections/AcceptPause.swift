import CarillonCore
import Logging
import Metrics
import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Pauses the listener when the system has no more files or memory for a connection, or only the ``FileReserve`` is left.
///
/// A connection that cannot be accepted stays in the system's queue, so the listener would be called again at once in an endless
/// loop. The listener retries after the pause. Meanwhile connections wait in the queue, or the system refuses them.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any NIOCore.Channel

    private let pause: TimeAmount
    private let isReserveReached: () -> Bool
    private let logger: Logger
    private let pauses = ServerMetric.acceptPauses.counter()
    private var isPausing = false
    private var lastLogged: NIODeadline?

    init(
        pause: TimeAmount = .milliseconds(200), logger: Logger,
        isReserveReached: @escaping () -> Bool = { FileReserve.isReached }
    ) {
        self.pause = pause
        self.isReserveReached = isReserveReached
        self.logger = logger
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.fireChannelRead(data)
        if !isPausing, isReserveReached() { begin(on: context.channel, reason: "the last file descriptors are reserved") }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let fault = error as? IOError
        let reason = fault.map { SystemErrorText.of($0.errnoCode) } ?? "the listener failed"
        switch fault?.errnoCode {
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            if !isPausing { begin(on: context.channel, reason: reason) }
        case ECONNABORTED:
            // The peer closed the connection before it was accepted. The listener continues.
            break
        default:
            logger.warning("cannot accept a connection", metadata: ["reason": "\(reason)"])
            context.fireErrorCaught(error)
        }
    }

    private func begin(on channel: any NIOCore.Channel, reason: String) {
        isPausing = true
        pauses.increment()
        report(reason)
        setAutoRead(false, of: channel)
        recheck(channel)
    }

    /// Ends the pause, or extends it while the reserve is reached. If the listener was closed meanwhile, setting the option has
    /// no effect.
    private func recheck(_ channel: any NIOCore.Channel) {
        channel.eventLoop.assumeIsolated().scheduleTask(in: pause) {
            if channel.isActive, self.isReserveReached() { return self.recheck(channel) }
            self.isPausing = false
            self.setAutoRead(true, of: channel)
        }
    }

    private func setAutoRead(_ isReading: Bool, of channel: any NIOCore.Channel) {
        channel.setOption(.autoRead, value: isReading).whenFailure { _ in }
    }

    /// Logs at most once a minute, because the message is the same each time.
    private func report(_ reason: String) {
        let now = NIODeadline.now()
        if let lastLogged, now < lastLogged + .minutes(1) { return }
        lastLogged = now
        logger.error("cannot accept connections; retrying", metadata: ["reason": "\(reason)"])
    }
}
