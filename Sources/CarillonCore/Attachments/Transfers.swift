import CarillonWire
import Synchronization

/// Limits the concurrent uploads and downloads of attachments. Each has an open file and uses some memory.
final class Transfers: Sendable {
    private struct QuotaKey: Hashable {
        var app: AppSerial
        var name: String
    }

    private struct State {
        var counts: [AttachmentUser: Int] = [:]
        var quotas: [QuotaKey: Int] = [:]
        var apps: [AppSerial: Int] = [:]
        var total = 0
    }

    private let state = Mutex(State())
    private let limits: AttachmentLimits

    init(_ limits: AttachmentLimits) { self.limits = limits }

    /// - Parameter quota: The name of the quota of the app's user.
    /// - Throws: ``Refusal`` if the maximum number is reached.
    func begin(_ user: AttachmentUser, quota name: String) throws(Refusal) -> Transfer {
        let quota = QuotaKey(app: user.app, name: name)
        let isSender = user.principal == .senders
        let most = isSender ? limits.transfersOfSenders : limits.transfersOfDevice
        try state.withLock { state throws(Refusal) in
            if state.counts[user, default: 0] >= most { throw Self.refusal(isSender ? "senders" : "device", of: most) }
            if !isSender, state.quotas[quota, default: 0] >= limits.transfersOfUser {
                throw Self.refusal("user", of: limits.transfersOfUser)
            }
            if state.apps[user.app, default: 0] >= limits.transfersOfApp {
                throw Self.refusal("app", of: limits.transfersOfApp)
            }
            guard state.total < limits.transfers else {
                throw AttachmentRefusals.transfers(
                    "transfers",
                    Refusal(
                        .overloaded, "The server has reached its limit of concurrent attachment transfers; retry later.",
                        retryAfterSeconds: 5))
            }
            state.counts[user, default: 0] += 1
            state.quotas[quota, default: 0] += 1
            state.apps[user.app, default: 0] += 1
            state.total += 1
        }
        return Transfer { [self] in end(user, quota) }
    }

    private static func refusal(_ principal: String, of most: Int) -> Refusal {
        AttachmentRefusals.transfers(
            "\(principal)_transfers",
            Refusal(
                .rateLimited,
                "There can be up to \(most) concurrent transfers per \(principal); wait until one has finished.",
                retryAfterSeconds: 5))
    }

    private func end(_ user: AttachmentUser, _ quota: QuotaKey) {
        state.withLock { state in
            state.total -= 1
            Self.lower(&state.counts[user])
            Self.lower(&state.quotas[quota])
            Self.lower(&state.apps[user.app])
        }
    }

    private static func lower(_ count: inout Int?) {
        let rest = (count ?? 0) - 1
        count = rest > 0 ? rest : nil
    }
}

/// A slot of one upload or download, until the object is deallocated.
package final class Transfer: Sendable {
    private let onEnd: @Sendable () -> Void
    init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
    deinit { onEnd() }
}
