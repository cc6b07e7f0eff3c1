import Synchronization

/// Whether services, or transfers of attachments, have something to do now: events that were not read, and work that began and has not ended.
///
/// A request that waits for its result at another device is no work here.
final class WakeActivity: Sendable {
    private struct State {
        /// How often something came, or was to be looked for.
        var arrivals: UInt64 = 0
        /// The arrivals before the last reading that found nothing more.
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

    /// Something came, or is to be looked for.
    func arrived() { state.withLock { $0.arrivals += 1 } }

    var arrivals: UInt64 { state.withLock { $0.arrivals } }

    /// A reading that began after some arrivals found nothing more.
    func read(upTo arrivals: UInt64) { change { $0.read = max($0.read, arrivals) } }

    func began() { state.withLock { $0.active += 1 } }

    /// - Parameter isEvent: Whether it was an event that was worked on.
    func ended(isEvent: Bool = false) {
        change { state in
            state.active -= 1
            if isEvent { state.ended += 1 }
        }
    }

    /// Whether there is nothing to do at this moment.
    var isIdle: Bool { state.withLock { $0.isIdle } }

    /// The number of events that were worked on.
    var endedEvents: UInt64 { state.withLock { $0.ended } }

    /// Waits until there is nothing to do, or the task is cancelled.
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
