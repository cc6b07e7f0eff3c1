import Synchronization

/// The position of one iteration in the events of an object.
final class EventReader<Event: StreamedEvent>: Sendable {
    private struct State {
        var buffer = EventBuffer<Event>()
        var waiters: [CheckedContinuation<Event?, Never>] = []
        var isFinished = false
    }

    private let state = Mutex(State())

    /// Returns the events that are dropped or replaced, so that the caller can release them outside of its lock.
    func notify(_ event: Event) -> [Event] {
        let (waiter, removed) = state.withLock { state -> (CheckedContinuation<Event?, Never>?, [Event]) in
            guard !state.isFinished else { return (nil, []) }
            guard state.waiters.isEmpty else { return (state.waiters.removeFirst(), []) }
            return (nil, state.buffer.append(event))
        }
        waiter?.resume(returning: event)
        return removed
    }

    /// Removes events that the iteration must not receive any more. Returns them, so that the caller can release them
    /// outside of its lock.
    func remove(where isRemoved: (Event) -> Bool) -> [Event] {
        state.withLock { $0.buffer.remove(where: isRemoved) }
    }

    /// Ends the iteration after its waiting events are taken.
    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: nil) }
    }

    /// Waits for the next event. Returns nil if nothing waits after `finish`, or when the task is cancelled, which finishes the
    /// iteration.
    func next() async -> Event? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: Event?? = state.withLock { state in
                    if let event = state.buffer.next() { return .some(event) }
                    if state.isFinished { return .some(nil) }
                    state.waiters.append(continuation)
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            finish()
        }
    }
}

/// Calls `onEnd` when no stream has the reader any more.
final class EventReading<Event: StreamedEvent>: Sendable {
    let reader: EventReader<Event>
    private let onEnd: @Sendable () -> Void

    init(_ reader: EventReader<Event>, onEnd: @escaping @Sendable () -> Void) {
        self.reader = reader
        self.onEnd = onEnd
    }

    deinit { onEnd() }
}
