import Synchronization

/// The last thing that went wrong, for whoever asks.
final class FailureNote: Sendable {
    private let failure = Mutex<PushError?>(nil)

    var last: PushError? { failure.withLock { $0 } }

    func note(_ error: PushError) { failure.withLock { $0 = error } }
}
