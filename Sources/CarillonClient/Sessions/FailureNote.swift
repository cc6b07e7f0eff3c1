import Logging
import Synchronization

/// The last thing that went wrong, for whoever asks, and the log of failures that keep the client from its server.
///
/// The first failure and each with another reason is a warning; a repetition is logged at `debug`.
final class FailureNote: Sendable {
    private struct State {
        var last: PushError?
        var reports = ConnectionReports()
        /// What was logged last of the server's refusals.
        var obstacle: PushError?
    }

    private let state = Mutex(State())
    private let logger: Logger

    init(logger: Logger = Logger(label: "carillon.client", factory: { _ in SwiftLogNoOpLogHandler() })) {
        self.logger = logger
    }

    var last: PushError? { state.withLock { $0.last } }

    /// What keeps the client from its work now; nil when nothing is known to.
    var present: PushError? { present(isLive: false) }

    /// Returns what keeps the client from its work now; nil when nothing is known to.
    ///
    /// - Parameter isLive: Whether messages can arrive. A failed HTTP request, such as that of a transfer, does not keep the client from
    ///   its work then.
    func present(isLive: Bool) -> PushError? {
        state.withLock { isLive ? $0.obstacle ?? $0.reports.presentOfSocket : $0.reports.present ?? $0.obstacle }
    }

    /// How many connections reached the point at which messages can arrive.
    var liveCount: Int { state.withLock { $0.reports.liveCount } }

    func note(_ error: PushError) { state.withLock { $0.last = error } }

    // MARK: Connections

    /// Notes a failure that ``willRetry(at:after:)`` reports. An attempt that was cancelled is none.
    func failed(at address: WebAddress, by route: ConnectionReports.Route, _ error: PushError) {
        if (error.cause as? ConnectionFailure)?.reason == .cancelled { return }
        state.withLock { state in
            state.last = error
            state.reports.failed(
                at: address.place, route == .socket ? address.text : address.origin, by: route, error)
        }
    }

    /// Notes and reports the failure of an HTTP request that is not repeated. It does not keep the client from its work.
    func failedOnce(at address: WebAddress, _ error: PushError) {
        let report = state.withLock { state in
            state.last = error
            return state.reports.failedOnce(at: address.place, address.origin, error)
        }
        logger.log(
            level: report == nil ? .debug : .warning, "a request to the server failed",
            metadata: ["address": "\(address.origin)", "reason": "\(error.message)"])
    }

    /// Reports the failure that was noted last at a host, unless it is a repetition.
    ///
    /// - Parameter wait: How long it is until the next attempt, if that is known.
    func willRetry(at address: WebAddress, after wait: Duration? = nil) {
        guard let report = state.withLock({ $0.reports.willRetry(at: address.place) }) else {
            return logger.debug("cannot connect to server; retrying", metadata: ["address": "\(address.origin)"])
        }
        var metadata: Logger.Metadata = ["address": "\(report.address)", "reason": "\(report.summary)"]
        metadata["advice"] = report.advice.map { Logger.MetadataValue.string($0) }
        metadata["retry-in-ms"] = wait.map { Logger.MetadataValue.stringConvertible($0.wholeMilliseconds) }
        logger.warning("cannot connect to server; retrying", metadata: metadata)
    }

    /// The host answered over HTTP.
    func answered(at address: WebAddress) {
        guard state.withLock({ $0.reports.answered(at: address.place) }) else { return }
        logger.info("server answers again", metadata: ["address": "\(address.origin)"])
    }

    /// Messages can arrive.
    func connected() {
        let hadFailed = state.withLock { state in
            // Two processes with one identity replace each other without end.
            if state.obstacle?.code != .replaced { state.obstacle = nil }
            return state.reports.connected()
        }
        if hadFailed { logger.info("connected to server again") }
    }

    // MARK: Refusals

    /// Notes what the server refuses, or what is wrong with its identity or this device's.
    func obstructed(_ error: PushError) {
        let isNew = state.withLock { state in
            state.last = error
            defer { state.obstacle = error }
            return state.obstacle?.code != error.code || state.obstacle?.message != error.message
        }
        logger.log(
            level: isNew ? .warning : .debug, "the client cannot do all of its work",
            metadata: ["code": "\(error.code)", "reason": "\(error.message)"])
    }
}
