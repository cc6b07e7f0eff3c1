import Synchronization

/// Counts what came, and wakes those who wait for the end of what waited.
final class CatchUps: Sendable {
    private struct State {
        /// Messages, events of services, firings and events of the device.
        var items = 0
        var waiting: [UInt64: AsyncStream<Void>.Continuation] = [:]
        var next: UInt64 = 0
    }

    private let state = Mutex(State())

    func received() { state.withLock { $0.items += 1 } }

    func caughtUp() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for waiter in waiting { waiter.finish() }
    }

    var items: Int { state.withLock { $0.items } }

    /// Ends when all that waited has come the next time.
    func nextEnd() -> AsyncStream<Void> {
        let (stream, waiter) = AsyncStream.makeStream(of: Void.self)
        let number = state.withLock { state in
            state.next += 1
            state.waiting[state.next] = waiter
            return state.next
        }
        waiter.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.waiting.removeValue(forKey: number) }
        }
        return stream
    }
}
