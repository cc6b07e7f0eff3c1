import CarillonWire
import Synchronization

/// How many attachments are brought and fetched at once, and by whom: each has a file open, and some memory.
final class Transfers: Sendable {
    private struct State {
        var counts: [AttachmentUser: Int] = [:]
        var total = 0
    }

    private let state = Mutex(State())
    private let limits: AttachmentLimits

    init(_ limits: AttachmentLimits) { self.limits = limits }

    /// - Throws: ``Refusal`` where there are as many as there may be.
    func begin(_ user: AttachmentUser) throws(Refusal) -> Transfer {
        let most = user.party == .senders ? limits.transfersOfSenders : limits.transfersOfDevice
        try state.withLock { state throws(Refusal) in
            guard state.counts[user, default: 0] < most else {
                throw Refusal(.rateLimited, "There may be \(most) transfers at once; wait for one.", retryAfterSeconds: 5)
            }
            guard state.total < limits.transfers else {
                throw Refusal(.overloaded, "The server moves as many attachments as it may.", retryAfterSeconds: 5)
            }
            state.counts[user, default: 0] += 1
            state.total += 1
        }
        return Transfer { [self] in end(user) }
    }

    private func end(_ user: AttachmentUser) {
        state.withLock { state in
            state.total -= 1
            let count = state.counts[user, default: 0] - 1
            state.counts[user] = count > 0 ? count : nil
        }
    }
}

/// A place among the transfers, until nobody has it any more.
package final class Transfer: Sendable {
    private let onEnd: @Sendable () -> Void
    init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
    deinit { onEnd() }
}
