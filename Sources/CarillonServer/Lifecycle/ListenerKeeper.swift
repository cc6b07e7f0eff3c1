import CarillonCore
import Logging
import Metrics
import Synchronization

/// Opens a listener, and opens it again when it closes, by the rules of ``ListenerRetry``.
///
/// NIO closes a listening socket on most errors of `accept`. On Linux these can be errors of the connection that was to be accepted
/// (accept(2), "Error handling").
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
        while !isStopping() {
            let wasOpen = Atomic<Bool>(false)
            let isAgain = retry.hasClosed
            var fault: (any Error)?
            do {
                try await listen { [self] in
                    wasOpen.store(true, ordering: .relaxed)
                    if isAgain { noteReopening() }
                }
            } catch {
                fault = error
            }
            if isStopping() { return }
            let action: ListenerRetry.Action
            if wasOpen.load(ordering: .relaxed) {
                action = retry.closed(at: .now)
                noteClosing(fault)
            } else {
                action = retry.openingFailed(at: .now)
            }
            switch action {
            case .open(let delay): try await Task.sleep(for: delay)
            case .giveUp: throw lost(because: fault, isAgain: isAgain)
            }
        }
    }

    private func noteClosing(_ fault: (any Error)?) {
        readiness.listenerClosed()
        ServerMetric.listenersClosed.counter().increment()
        logger.error(
            "listener closed; opening it again",
            metadata: ["address": "\(place)", "reason": "\(fault.map { "\($0)" } ?? "an error of accept")"])
    }

    private func noteReopening() {
        readiness.listenerOpened()
        logger.notice("listener is open again", metadata: ["address": "\(place)"])
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
    /// For how long openings failed.
    let seconds: Int64

    /// For the operator.
    package var description: String {
        "The listener on \(address) closed and cannot be opened again for \(seconds) seconds: \(reason)."
    }
}
