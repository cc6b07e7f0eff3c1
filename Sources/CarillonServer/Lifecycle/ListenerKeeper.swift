import CarillonCore
import Logging
import Metrics
import Synchronization

/// Opens a listener, and opens it again when it closes, by the rules of ``ListenerRetry``.
///
/// NIO closes a listening socket on most errors of `accept`. On Linux these can be errors of the new connection (accept(2),
/// "Error handling").
struct ListenerKeeper: Sendable {
    let place: ListenPlace
    let limits: ListenerRetry.Limits
    let readiness: Readiness
    let logger: Logger

    /// - Parameters:
    ///   - isStopping: Whether the listener may close.
    ///   - listen: Opens the listener, calls the closure, and returns or throws when the listener has closed.
    /// - Throws: The error of the first opening, or ``ListenerLost``.
    func run(
        until isStopping: () -> Bool, _ listen: (_ opened: @escaping @Sendable () -> Void) async throws -> Void
    ) async throws {
        var retry = ListenerRetry(limits: limits)
        // Whether readiness counts the listener as closed, and whether a closing was logged since the listener was last open for
        // long enough.
        var isClosed = false
        var isReported = false
        while !isStopping() {
            let opening = Opening()
            let isAgain = retry.hasClosed
            var fault: (any Error)?
            do {
                if isAgain {
                    try await listenAgain(opening, isReported: isReported, listen)
                } else {
                    try await listen { opening.began() }
                }
            } catch {
                fault = error
            }
            if isStopping() { return }
            let action: ListenerRetry.Action
            if opening.hasBegun {
                action = retry.closed(at: .now)
                if opening.wasSteady { (isClosed, isReported) = (false, false) }
                if !isClosed { readiness.listenerClosed() }
                isClosed = true
                ServerMetric.listenersClosed.counter().increment()
                if retry.isReported(at: .now) {
                    reportClosing(fault)
                    isReported = true
                }
            } else {
                action = retry.openingFailed(at: .now)
            }
            switch action {
            case .open(let delay): try await Task.sleep(for: delay)
            case .giveUp: throw lost(because: fault, isAgain: isAgain)
            }
        }
    }

    /// One period in which the listener is open.
    private final class Opening: Sendable {
        private let isOpen = Atomic<Bool>(false)
        private let isSteady = Atomic<Bool>(false)
        private let openings = AsyncStream.makeStream(of: Void.self)

        var hasBegun: Bool { isOpen.load(ordering: .relaxed) }
        /// Whether the listener stayed open for ``ListenerRetry/Limits/steady``.
        var wasSteady: Bool { isSteady.load(ordering: .relaxed) }

        func began() {
            isOpen.store(true, ordering: .relaxed)
            openings.continuation.finish()
        }

        func becameSteady() { isSteady.store(true, ordering: .relaxed) }

        /// Returns when the listener is open, or the task is cancelled.
        func waitUntilBegun() async { for await _ in openings.stream {} }
    }

    /// Listens. Counts the listener as open when it has stayed open for a while.
    private func listenAgain(
        _ opening: Opening, isReported: Bool,
        _ listen: (_ opened: @escaping @Sendable () -> Void) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                await opening.waitUntilBegun()
                try await Task.sleep(for: limits.steady)
                opening.becameSteady()
                readiness.listenerOpened()
                if isReported { logger.notice("listener is open again", metadata: ["address": "\(place)"]) }
            }
            try await listen { opening.began() }
            group.cancelAll()
        }
    }

    private func reportClosing(_ fault: (any Error)?) {
        logger.error(
            "listener closed; opening it again",
            metadata: ["address": "\(place)", "reason": "\(fault.map { "\($0)" } ?? "an error of accept")"])
    }

    private func lost(because fault: (any Error)?, isAgain: Bool) -> any Error {
        guard isAgain else { return fault ?? ListenFault(address: place.description, reason: "it closed at once") }
        let reason = (fault as? ListenFault)?.reason ?? fault.map { "\($0)" } ?? "it closed at once"
        let lost = ListenerLost(address: place.description, reason: reason, seconds: limits.patience.components.seconds)
        logger.error("cannot open listener again; stopping", metadata: ["address": "\(place)", "reason": "\(reason)"])
        return lost
    }
}

/// A listener closed, and cannot be opened again.
package struct ListenerLost: Error, CustomStringConvertible {
    let address: String
    let reason: String
    /// The time for which the listener could not be opened.
    let seconds: Int64

    /// A sentence for the operator.
    package var description: String {
        "The listener on \(address) closed and cannot be opened again for \(seconds) seconds: \(reason)."
    }
}
