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

/// Lets the listener wait when the system has no more files or memory for a connection.
///
/// A connection that cannot be accepted stays in the system's queue, and so the listener would be called again at once,
/// for ever. It looks again a little later instead; what it could not take waits, or is told by the system.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any NIOCore.Channel

    private let pause: TimeAmount
    private let logger: Logger
    private let pauses = ServerMetric.acceptPauses.counter()
    private var isPausing = false
    private var lastLogged: NIODeadline?

    init(pause: TimeAmount = .milliseconds(200), logger: Logger) {
        self.pause = pause
        self.logger = logger
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let fault = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(fault.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        if isPausing { return }
        isPausing = true
        pauses.increment()
        report(fault)
        let channel = context.channel
        setAutoRead(false, of: channel)
        // Ends with the pause; on a listener that was closed meanwhile the option means nothing.
        context.eventLoop.assumeIsolated().scheduleTask(in: pause) {
            self.isPausing = false
            self.setAutoRead(true, of: channel)
        }
    }

    private func setAutoRead(_ isReading: Bool, of channel: any NIOCore.Channel) {
        channel.setOption(.autoRead, value: isReading).whenFailure { _ in }
    }

    /// Once a minute: it is the same story each time.
    private func report(_ fault: IOError) {
        let now = NIODeadline.now()
        if let lastLogged, now < lastLogged + .minutes(1) { return }
        lastLogged = now
        logger.error("connections cannot be accepted for now", metadata: ["reason": "\(fault)"])
    }
}
