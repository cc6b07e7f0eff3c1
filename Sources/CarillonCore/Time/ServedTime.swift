import Synchronization

/// The time for which the server was in service, over all its runs. It is counted by the monotonic clock, and written once a
/// minute and when the server stops.
package final class ServedTime: Sendable {
    private struct State {
        var clock: ServedClock
        /// The counter in the store.
        var written: Int64
        /// The number of seconds by which the wall clock was set and that were not returned yet.
        var step: Int64?
    }

    private let store: any ServerStore
    private let time: TimeSource
    private let ticks: TickSource
    private let state: Mutex<State>

    package init(store: any ServerStore, time: TimeSource, ticks: TickSource) async throws {
        self.store = store
        self.time = time
        self.ticks = ticks
        let earlier = try await store.servedSeconds()
        state = Mutex(
            State(clock: ServedClock(earlierSeconds: earlier, startedAt: ticks.now()), written: earlier))
    }

    package var seconds: Int64 {
        let ticks = ticks.now()
        return state.withLock { $0.clock.served(at: ticks) }
    }

    /// Returns the time for irreversible decisions; nil if none may be made now: see ``ServedClock``.
    package func retention() -> RetentionTime? {
        state.withLock { state in
            // The clocks are read inside the lock, because a later reading must not be noted before an earlier one.
            let (now, ticks) = (time.now(), ticks.now())
            if let step = state.clock.read(now, ticks) { state.step = (state.step ?? 0) + step }
            guard state.clock.isSettled(at: ticks) else { return nil }
            return RetentionTime(now: now, served: state.clock.served(at: ticks))
        }
    }

    /// Returns the number of seconds by which the wall clock was set since the last call; nil if it was not set.
    package func takeStep() -> Int64? {
        _ = retention()
        return state.withLock { state in
            defer { state.step = nil }
            return state.step
        }
    }

    /// Writes the counter if a minute has passed since it was written.
    package func write() async throws { try await write(everySeconds: Self.writeSeconds) }

    /// Writes the counter when the server stops.
    package func writeLast() async throws { try await write(everySeconds: 1) }

    private func write(everySeconds pause: Int64) async throws {
        let now = seconds
        guard now - state.withLock({ $0.written }) >= pause else { return }
        try await store.noteServed(now)
        state.withLock { $0.written = max($0.written, now) }
    }

    private static let writeSeconds: Int64 = 60
}
