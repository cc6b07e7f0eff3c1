import Synchronization

/// Whether services, or transfers of attachments, have work now: unread events, and work that began and has not ended.
///
/// A request that waits for its result from another device does not count as work.
final class WakeActivity: Sendable {
    private struct State {
        /// The number of times that something arrived, or that events must be looked for.
        var arrivals: UInt64 = 0
        /// The arrivals before the last read that found nothing more.
        var read: UInt64 = 0
        var active = 0
        var ended: UInt64 = 0
        var waiting: [UInt64: AsyncStream<Void>.Continuation] = [:]
        var next: UInt64 = 0

        var isIdle: Bool { read == arrivals && active == 0 }

        mutating func takeWaiting() -> [AsyncStream<Void>.Continuation] {
            guard isIdle else { return [] }
            defer { waiting = [:] }
            return Array(waiting.values)
        }
    }

    private let state = Mutex(State())

    /// Records that something arrived, or that events must be looked for.
    func arrived() { state.withLock { $0.arrivals += 1 } }

    var arrivals: UInt64 { state.withLock { $0.arrivals } }

    /// Records that a read found nothing more. The read began after a number of arrivals.
    func read(upTo arrivals: UInt64) { change { $0.read = max($0.read, arrivals) } }

    func began() { state.withLock { $0.active += 1 } }

    /// - Parameter isEvent: Whether the work was for an event.
    func ended(isEvent: Bool = false) {
        change { state in
            state.active -= 1
            if isEvent { state.ended += 1 }
        }
    }

    /// Whether there is no work at this moment.
    var isIdle: Bool { state.withLock { $0.isIdle } }

    /// The number of events whose work ended.
    var endedEvents: UInt64 { state.withLock { $0.ended } }

    /// Waits until there is no work, or the task is cancelled.
    func idle() async {
        let (stream, waiter) = AsyncStream.makeStream(of: Void.self)
        let number = state.withLock { state -> UInt64? in
            guard !state.isIdle else { return nil }
            state.next += 1
            state.waiting[state.next] = waiter
            return state.next
        }
        guard let number else { return }
        for await _ in stream {}
        state.withLock { _ = $0.waiting.removeValue(forKey: number) }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiting = state.withLock { state in
            body(&state)
            return state.takeWaiting()
        }
        for waiter in waiting { waiter.finish() }
    }
}
