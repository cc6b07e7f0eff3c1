import Synchronization

/// Who hears what happens to something: iterations, and delegates, which are called one after the other.
final class EventListeners<Subject: AnyObject & Sendable, Event: Sendable>: Sendable {
    typealias Delegate = AnyObject & Sendable

    /// How a delegate is called.
    struct Calls: Sendable {
        let added: @Sendable (any Delegate, Subject) -> Void
        let removed: @Sendable (any Delegate, Subject) -> Void
        let happened: @Sendable (any Delegate, Event, Subject) -> Void
    }

    private struct Weak: Sendable {
        weak var delegate: (any Delegate)?
    }

    private enum Call: Sendable {
        case added(any Delegate, Subject)
        case removed(any Delegate, Subject)
        /// To those who were there then.
        case happened(Event, Subject, [Weak])
    }

    private struct Reader {
        let stream: AsyncStream<Event>.Continuation
        /// How many more events fitted into the buffer after the last one.
        var room = EventListeners.buffered
        var toldAt: ContinuousClock.Instant?

        mutating func tell(_ event: Event, at now: ContinuousClock.Instant) {
            if case .enqueued(let room) = stream.yield(event) { self.room = room } else { room = 0 }
            toldAt = now
        }
    }

    private struct State {
        var readers: [UInt64: Reader] = [:]
        var nextReader: UInt64 = 0
        var delegates: [Weak] = []
        /// What delegates are called with, as long as it lives.
        weak var subject: Subject?
        var calls: [Call] = []
        var isCalling = false
    }

    private let state = Mutex(State())
    private let calls: Calls
    /// Events that are kept for each iteration, the newest.
    static var buffered: Int { 100 }

    init(calling calls: Calls) { self.calls = calls }

    deinit {
        for reader in state.withLock({ $0.readers }).values { reader.stream.finish() }
    }

    // MARK: Iterations

    func subscribe() -> AsyncStream<Event> {
        let (stream, reader) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(Self.buffered))
        let number = state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = Reader(stream: reader)
            return state.nextReader
        }
        reader.onTermination = { [weak self] _ in
            // The value is taken out of the lock, so that nothing is released inside it.
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        return stream
    }

    func tell(_ events: [Event]) {
        guard !events.isEmpty else { return }
        let begins = state.withLock { state in
            let now = ContinuousClock.now
            for event in events { for number in state.readers.keys { state.readers[number]?.tell(event, at: now) } }
            guard let subject = state.subject, !state.delegates.isEmpty else { return false }
            state.calls += events.map { .happened($0, subject, state.delegates) }
            return Self.begin(&state)
        }
        if begins { call() }
    }

    /// Tells iterations of a progress. A reader whose buffer is half full hears of it every ten seconds, so that other events stay in the
    /// buffer.
    func tellProgress(_ event: Event) {
        state.withLock { state in
            let now = ContinuousClock.now
            for (number, reader) in state.readers {
                let isBusy = reader.room < Self.buffered / 2
                if isBusy, let toldAt = reader.toldAt, toldAt.duration(to: now) < .seconds(10) { continue }
                state.readers[number]?.tell(event, at: now)
            }
        }
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

    /// Ends by itself, when everything was called.
    private func call() {
        Task {
            while let next = self.next() {
                switch next {
                case .added(let delegate, let subject): calls.added(delegate, subject)
                case .removed(let delegate, let subject): calls.removed(delegate, subject)
                case .happened(let event, let subject, let listeners):
                    for delegate in listeners.compactMap(\.delegate) where self.isThere(delegate) {
                        calls.happened(delegate, event, subject)
                    }
                }
            }
        }
    }

    private func isThere(_ delegate: any Delegate) -> Bool {
        state.withLock { state in state.delegates.contains { $0.delegate === delegate } }
    }

    private func next() -> Call? {
        state.withLock { state in
            guard !state.calls.isEmpty else {
                state.isCalling = false
                return nil
            }
            return state.calls.removeFirst()
        }
    }
}
