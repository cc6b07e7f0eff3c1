import Synchronization

/// Serializes the evaluations of one binding, in the order of the calls. Without this, each of two concurrent evaluations could
/// miss the changes of the other.
final class EvaluationTurns: Sendable {
    /// The waiting calls of each binding. A binding has an entry while a call has its turn.
    private let waiting = Mutex<[BindingSerial: [CheckedContinuation<Void, Never>]]>([:])

    /// Runs the body when no other call has the turn of the binding.
    func take<Value>(_ binding: BindingSerial, _ body: () async throws -> Value) async throws -> Value {
        await begin(binding)
        defer { end(binding) }
        return try await body()
    }

    /// Returns the number of calls that wait for a binding.
    func waiters(for binding: BindingSerial) -> Int { waiting.withLock { $0[binding]?.count ?? 0 } }

    private func begin(_ binding: BindingSerial) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isFree = waiting.withLock { waiting in
                guard waiting[binding] != nil else {
                    waiting[binding] = []
                    return true
                }
                waiting[binding]?.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    private func end(_ binding: BindingSerial) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard waiting[binding]?.isEmpty == false else {
                waiting[binding] = nil
                return nil
            }
            return waiting[binding]?.removeFirst()
        }
        next?.resume()
    }
}
