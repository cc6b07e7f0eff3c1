import Synchronization

/// Who hears what happens to the device: iterations, and delegates, which are called one after the other.
final class PushDeviceListeners: Sendable {
    private struct Weak: Sendable {
        weak var delegate: (any PushDeviceDelegate)?
    }

    private enum Call: Sendable {
        case added(any PushDeviceDelegate, PushDevice)
        case removed(any PushDeviceDelegate, PushDevice)
        /// To those who were there then.
        case happened(PushDeviceEvent, PushDevice, [Weak])
    }

    private struct State {
        var readers: [UInt64: AsyncStream<PushDeviceEvent>.Continuation] = [:]
        var nextReader: UInt64 = 0
        var delegates: [Weak] = []
        /// The device that delegates are called with, as long as it lives.
        weak var device: PushDevice?
        var calls: [Call] = []
        var isCalling = false
    }

    private let state = Mutex(State())
    static let buffered = 100

    deinit {
        for reader in state.withLock({ $0.readers }).values { reader.finish() }
    }

    // MARK: Iterations

    func subscribe() -> AsyncStream<PushDeviceEvent> {
        let (stream, reader) = AsyncStream.makeStream(
            of: PushDeviceEvent.self, bufferingPolicy: .bufferingNewest(Self.buffered))
        let number = state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = reader
            return state.nextReader
        }
        reader.onTermination = { [weak self] _ in
            // The value is taken out of the lock, so that nothing is released inside it.
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        return stream
    }

    func tell(_ events: [PushDeviceEvent]) {
        guard !events.isEmpty else { return }
        let begins = state.withLock { state in
            for event in events { for reader in state.readers.values { reader.yield(event) } }
            guard let device = state.device, !state.delegates.isEmpty else { return false }
            state.calls += events.map { .happened($0, device, state.delegates) }
            return Self.begin(&state)
        }
        if begins { call() }
    }

    // MARK: Delegates

    var delegates: [any PushDeviceDelegate] { state.withLock { $0.delegates.compactMap(\.delegate) } }

    func add(_ delegate: any PushDeviceDelegate, to device: PushDevice) {
        let begins = state.withLock { state in
            state.delegates.removeAll { $0.delegate == nil }
            state.device = device
            guard !state.delegates.contains(where: { $0.delegate === delegate }) else { return false }
            state.delegates.append(Weak(delegate: delegate))
            state.calls.append(.added(delegate, device))
            return Self.begin(&state)
        }
        if begins { call() }
    }

    func remove(_ delegate: any PushDeviceDelegate, from device: PushDevice) {
        let begins = state.withLock { state in
            guard let place = state.delegates.firstIndex(where: { $0.delegate === delegate }) else { return false }
            state.delegates.remove(at: place)
            state.calls.append(.removed(delegate, device))
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
                case .added(let delegate, let device): delegate.didAddDelegate(to: device)
                case .removed(let delegate, let device): delegate.didRemoveDelegate(from: device)
                case .happened(let event, let device, let listeners):
                    for delegate in listeners.compactMap(\.delegate) where self.isThere(delegate) {
                        Self.call(delegate, event, device)
                    }
                }
            }
        }
    }

    private func isThere(_ delegate: any PushDeviceDelegate) -> Bool {
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

    private static func call(_ delegate: any PushDeviceDelegate, _ event: PushDeviceEvent, _ device: PushDevice) {
        switch event {
        case .statusChanged(let status): delegate.didChangeStatus(of: device, to: status)
        case .registered:
            delegate.didRegister(device)
            delegate.didUpdateSubscriptions(of: device)
        case .suspended(let reason): delegate.didSuspend(device, because: reason)
        case .resumed: delegate.didResume(device)
        case .registrationFailed(let error): delegate.didFailRegistration(of: device, error)
        // Told to listeners of events alone.
        case .userTaken, .userRefused: break
        case .badgeReset: delegate.didResetBadge(of: device)
        case .badgeResetFailed(let error): delegate.didFailBadgeReset(of: device, error)
        }
    }
}

/// What happens to the device, from the beginning of each iteration on. An iteration ends when its task is cancelled or the
/// client is released.
public struct PushDeviceEvents: AsyncSequence, Sendable {
    public typealias Element = PushDeviceEvent
    public typealias Failure = Never

    let listeners: PushDeviceListeners

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator { Iterator(base: listeners.subscribe().makeAsyncIterator()) }

    /// One reader's place in the events.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = PushDeviceEvent
        public typealias Failure = Never

        var base: AsyncStream<PushDeviceEvent>.Iterator

        /// Waits for the next event; nil when the iteration ends.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> PushDeviceEvent? {
            await base.next(isolation: actor)
        }
    }
}
