import CarillonCore
import CarillonWire
import Synchronization

/// A device's inbox as server-sent events: the same envelopes, in the same order, through the same window as a socket.
/// The device answers for them with `POST /v1/inbox/results`.
final class InboxStream: LiveSession {
    enum Item: Sendable {
        case envelope(Envelope)
        case caughtUp
        case keepAlive
        case ended(SessionEnd)
    }

    private struct State {
        var window: EnvelopeWindow
        var isOpen = true
        /// Of envelopes that were given and are not written yet.
        var waitingBytes = 0
        var isPaused = false
    }

    let items: AsyncStream<Item>
    private let output: AsyncStream<Item>.Continuation
    private let device: DeviceSerial
    private let home: Home
    private let time: TimeSource
    private let outputBytes: Int
    private let state: Mutex<State>

    /// The stream's buffer needs no bound of its own: what waits in it pauses the window.
    init(device: DeviceSerial, home: Home, time: TimeSource, window: EnvelopeWindow.Limits) {
        self.device = device
        self.home = home
        self.time = time
        outputBytes = window.outputBytes
        state = Mutex(State(window: EnvelopeWindow(limits: window)))
        (items, output) = AsyncStream.makeStream(of: Item.self, bufferingPolicy: .unbounded)
    }

    func begin() {
        home.sessions.join(self, device: device)
        start(state.withLock { $0.window.began() })
    }

    /// The connection is gone.
    func finish() {
        home.sessions.leave(self, device: device)
        let lost = state.withLock { state in
            state.isOpen = false
            return state.window.ended()
        }
        for id in lost { home.inbox.settle(id, device: device, .dropped, code: nil) }
        output.finish()
    }

    /// Whether what was taken out of ``items`` may still be given: it can have been withdrawn, or have expired, meanwhile.
    func isWanted(_ item: Item) -> Bool {
        guard case .envelope(let envelope) = item else { return true }
        if !envelope.isVolatile, envelope.isExpired(at: time.now()) { return false }
        return state.withLock { $0.window.holds(envelope.id) }
    }

    func keepAlive() { output.yield(.keepAlive) }

    /// An item was written to the peer, or is not wanted any more.
    func done(with item: Item) {
        guard case .envelope(let envelope) = item else { return }
        start(
            state.withLock { state in
                state.waitingBytes -= envelope.byteCount
                guard state.isPaused, state.waitingBytes <= outputBytes / 4 else { return nil }
                state.isPaused = false
                return state.isOpen ? state.window.outputResumed(at: time.now()) : nil
            })
    }

    private func give(_ envelope: Envelope, _ state: inout State) {
        output.yield(.envelope(envelope))
        state.waitingBytes += envelope.byteCount
        guard !state.isPaused, state.waitingBytes > outputBytes else { return }
        state.isPaused = true
        state.window.outputPaused()
    }

    func offer(_ envelope: Envelope) {
        let load: EnvelopeWindow.Load? = state.withLock { state in
            guard state.isOpen else { return nil }
            switch state.window.offered(envelope, isVolatile: false, at: time.now()) {
            case .give:
                give(envelope, &state)
                return nil
            case .later(let load):
                return load
            }
        }
        start(load)
    }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        let wasGiven = state.withLock { state in
            guard state.isOpen, state.window.offered(envelope, isVolatile: true, at: time.now()) == .give else {
                return false
            }
            give(envelope, &state)
            return true
        }
        answer(wasGiven)
    }

    func storedMore() {
        start(state.withLock { $0.isOpen ? $0.window.storedMore(at: time.now()) : nil })
    }

    func withdrew(_ withdrawal: EnvelopeWindow.Withdrawal, done: @escaping @Sendable () -> Void) {
        start(state.withLock { $0.isOpen ? $0.window.withdrew(withdrawal) : nil })
        done()
    }

    func settled(_ ids: [MessageID]) {
        for id in ids { start(state.withLock { $0.isOpen ? $0.window.settled(id) : nil }) }
    }

    func end(because reason: SessionEnd) {
        output.yield(.ended(reason))
        output.finish()
    }

    private func start(_ load: EnvelopeWindow.Load?) {
        guard let load else { return }
        // Ends with the answer of the store.
        Task { await self.run(load) }
    }

    private func run(_ load: EnvelopeWindow.Load) async {
        let read = try? await home.inbox.waiting(
            device: device, after: load.after, limit: load.limit, bytes: load.bytes)
        let next: EnvelopeWindow.Load? = state.withLock { state in
            guard state.isOpen else { return nil }
            let page: InboxPage
            switch read {
            case .page(let read)?:
                page = read
            case .deviceGone?:
                end(because: .deviceGone)
                return nil
            case nil:
                state.window.loadFailed()
                output.finish()
                return nil
            }
            let loaded = state.window.loaded(page.envelopes, isComplete: page.isComplete, at: time.now())
            for envelope in loaded.give { give(envelope, &state) }
            if loaded.isCaughtUp { output.yield(.caughtUp) }
            return loaded.load
        }
        start(next)
    }
}
