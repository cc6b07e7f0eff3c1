import Synchronization

/// The listeners of an object: iterations, and delegates, which are called one after the other. ``DelegateCalls`` limits the
/// number of waiting calls.
final class EventListeners<Subject: AnyObject & Sendable, Event: StreamedEvent>: Sendable {
    typealias Delegate = AnyObject & Sendable

    /// How a delegate is called.
    struct Calls: Sendable {
        let added: @Sendable (any Delegate, Subject) -> Void
        let removed: @Sendable (any Delegate, Subject) -> Void
        let happened: @Sendable (any Delegate, Event, Subject) -> Void
        /// Called before delegates are called with an event. Returns whether they are called.
        var willHappen: @Sendable (Event, Subject) async -> Bool = { _, _ in true }
        /// Called after the delegates. No delegate received the event if all delegates were removed before their call, if
        /// ``willHappen`` returned false, if the user changed, or if the event was dropped.
        var finished: @Sendable (Event, Subject, _ wasDelivered: Bool) -> Void = { _, _, _ in }
    }

    private struct Weak: Sendable {
        weak var delegate: (any Delegate)?
    }

    private enum Call: Sendable {
        case added(any Delegate, Subject)
        case removed(any Delegate, Subject)
        /// For the delegates that were added when the event happened.
        case happened(Event, Subject, [Weak], DelegateStart? = nil)
    }

    private struct State {
        var readers: [UInt64: EventReader<Event>] = [:]
        var nextReader: UInt64 = 0
        var delegates: [Weak] = []
        /// The object that is passed to the delegates, as long as it exists.
        weak var subject: Subject?
        var calls = DelegateCalls<Event, Call>()
        var isCalling = false
        /// Whether the device's user changed since the event of the present call was taken.
        var hasOwnerChanged = false
    }

    private let state = Mutex(State())
    private let calls: Calls

    init(calling calls: Calls) { self.calls = calls }

    deinit {
        for reader in state.withLock({ $0.readers }).values { reader.finish() }
    }

    // MARK: Iterations

    /// Returns the stream of one iteration. ``EventBuffer`` limits its waiting events.
    func subscribe() -> AsyncStream<Event> {
        let reader = EventReader<Event>()
        let number = state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = reader
            return state.nextReader
        }
        let reading = EventReading(reader) { [weak self] in
            // The removed value is returned from the closure, so that it is not released inside the lock.
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        return AsyncStream(unfolding: { await reading.reader.next() })
    }

    func notify(_ events: [Event], start: DelegateStart? = nil) { _ = deliver(events, start: start) }

    /// Notifies delegates and iterations of events.
    /// - Parameters:
    ///   - isKept: Whether only the delegates have the events. Such events are not dropped.
    ///   - start: Surrounds the calls of the delegates with each of the events.
    /// - Returns: Whether there are delegates, so that ``Calls/finished`` is called for each event.
    func deliver(_ events: [Event], isKept: Bool = false, start: DelegateStart? = nil) -> Bool {
        guard !events.isEmpty else { return false }
        // Dropped events are returned from the closure, so that they are not released inside the lock.
        let (subject, begins, dropped, _) = state.withLock { state -> (Subject?, Bool, [Event], [Event]) in
            var removed: [Event] = []
            for event in events { removed += state.readers.values.flatMap { $0.notify(event) } }
            guard let subject = state.subject, !state.delegates.isEmpty else { return (nil, false, [], removed) }
            var dropped: [Event] = []
            for event in events {
                let call = Call.happened(event, subject, state.delegates, start)
                dropped += state.calls.append(call, for: event, isKept: isKept)
            }
            return (subject, Self.begin(&state), dropped, removed)
        }
        if begins { call() }
        guard let subject else { return false }
        for event in dropped { calls.finished(event, subject, false) }
        return true
    }

    /// Allows that events that were kept for delegates are dropped, because another receiver has them too.
    func release(where isReleased: (Event) -> Bool) {
        finish { $0.calls.release(where: isReleased) }
    }

    /// Removes the waiting calls of delegates for events that must not be reported any more.
    func cancelCalls(where isCancelled: (Event) -> Bool) {
        finish { $0.calls.remove(where: isCancelled) }
    }

    /// Removes the events of the former user when the device has another user or none. A delegate that is about to be called with
    /// such an event is not called. Removed events do not count as missed.
    func ownerChanged() {
        // Removed events are returned from the closure, so that they are not released inside the lock.
        _ = state.withLock { state in state.readers.values.flatMap { $0.remove(where: \.isOfUser) } }
        finish { state in
            state.hasOwnerChanged = true
            return state.calls.remove(where: \.isOfUser)
        }
    }

    private func finish(_ take: (inout State) -> [Event]) {
        let (subject, events) = state.withLock { state in (state.subject, take(&state)) }
        guard let subject else { return }
        for event in events { calls.finished(event, subject, false) }
    }

    /// Notifies iterations of a progress. Delegates are not notified.
    func notifyProgress(_ event: Event) {
        _ = state.withLock { state in state.readers.values.flatMap { $0.notify(event) } }
    }

    // MARK: Delegates

    var livingDelegates: [any Delegate] { state.withLock { $0.delegates.compactMap(\.delegate) } }

    func add(_ delegate: any Delegate, to subject: Subject) {
        let begins = state.withLock { state in
            state.delegates.removeAll { $0.delegate == nil }
            state.subject = subject
            guard !state.delegates.contains(where: { $0.delegate === delegate }) else { return false }
            state.delegates.append(Weak(delegate: delegate))
            state.calls.append(.added(delegate, subject))
            return Self.begin(&state)
        }
        if begins { call() }
    }

    func remove(_ delegate: any Delegate, from subject: Subject) {
        let begins = state.withLock { state in
            guard let place = state.delegates.firstIndex(where: { $0.delegate === delegate }) else { return false }
            state.delegates.remove(at: place)
            state.calls.append(.removed(delegate, subject))
            return Self.begin(&state)
        }
        if begins { call() }
    }

    private static func begin(_ state: inout State) -> Bool {
        defer { state.isCalling = true }
        return !state.isCalling
    }

    /// Starts a task that ends when all waiting calls are made.
    private func call() {
        Task {
            while let next = self.next() {
                switch next {
                case .added(let delegate, let subject): calls.added(delegate, subject)
                case .removed(let delegate, let subject): calls.removed(delegate, subject)
                case .happened(let event, let subject, let listeners, let start):
                    let present = listeners.compactMap(\.delegate).filter { self.isRegistered($0) }
                    var isNotified = !present.isEmpty
                    let begun = isNotified ? start : nil
                    if let begun { isNotified = await begun.begins() }
                    if isNotified { isNotified = await calls.willHappen(event, subject) }
                    var wasDelivered = false
                    // A delegate may have been removed meanwhile, and the user may have changed.
                    for delegate in present where isNotified && self.isRegistered(delegate) && self.isCurrent(event) {
                        wasDelivered = true
                        calls.happened(delegate, event, subject)
                    }
                    begun?.ended()
                    calls.finished(event, subject, wasDelivered)
                }
            }
        }
    }

    private func isRegistered(_ delegate: any Delegate) -> Bool {
        state.withLock { state in state.delegates.contains { $0.delegate === delegate } }
    }

    /// Whether the event does not belong to a former user. Valid for the event that was taken last.
    private func isCurrent(_ event: Event) -> Bool { !event.isOfUser || !state.withLock { $0.hasOwnerChanged } }

    private func next() -> Call? {
        state.withLock { state -> Call? in
            state.hasOwnerChanged = false
            while let next = state.calls.next() {
                switch next {
                case .call(let call): return call
                case .missed(let count):
                    guard let subject = state.subject else { continue }
                    return .happened(Event.missed(count), subject, state.delegates)
                }
            }
            state.isCalling = false
            return nil
        }
    }
}
