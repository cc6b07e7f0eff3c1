import CarillonCore
import CarillonWire
import Logging
import Synchronization

/// Delivers a device's inbox to an event stream, which counts as the device's connection. The device acknowledges its envelopes
/// with `POST /v1/inbox/results`.
final class InboxFeed: LiveSession {
    enum Item: Sendable {
        case envelope(Envelope)
        case caughtUp
        case keepAlive
        case ended(SessionEnd)
        case failed(StoreFault)

        var isLast: Bool {
            switch self {
            case .ended, .failed: true
            case .envelope, .caughtUp, .keepAlive: false
            }
        }
    }

    /// The results of one event.
    struct Batch: Sendable {
        var items: [Item]
    }

    private struct State {
        var machine: DeliveryMachine
        var isOpen = true
        /// Whether the home made this feed the device's session.
        var isJoined = false
        /// The bytes of envelopes that are in ``batches`` and not written yet.
        var waitingBytes = 0
        var isPaused = false
        /// The position of the last written envelope.
        var written: Int64 = 0
        /// The number of withdrawn copies of each envelope in ``batches``. The envelope is delivered again after them.
        var takenBack: [MessageID: Int] = [:]
    }

    let batches: AsyncStream<Batch>
    private let output: AsyncStream<Batch>.Continuation
    private let device: Device
    private let version: Int
    private let homes: Homes
    private let time: TimeSource
    private let logger: Logger
    private let outputBytes: Int
    private let state: Mutex<State>

    /// The buffer needs no limit, because waiting data pauses the machine.
    ///
    /// - Parameters:
    ///   - device: The device as it was read when its credential was checked. Its home checks the credential again.
    ///   - version: The version of Carillon's extension that the client supports.
    ///   - logger: Receives a message if the home cannot be used.
    init(
        of device: Device, homes: Homes, time: TimeSource, limits: DeliveryMachine.Limits, version: Int = 1,
        logger: Logger
    ) {
        self.device = device
        self.version = version
        self.homes = homes
        self.time = time
        self.logger = logger
        outputBytes = limits.outputBytes
        state = Mutex(State(machine: DeliveryMachine(limits: limits, version: version)))
        (batches, output) = AsyncStream.makeStream(of: Batch.self, bufferingPolicy: .unbounded)
    }

    /// Connects the device. The caller must call ``finish()`` afterwards, even if the device is not connected.
    func begin() async {
        // The load begins before an envelope can be offered, so that there is only one load at a time.
        let load = state.withLock { $0.machine.began() }
        let arrived = await arrive(load)
        if arrived.device != nil { state.withLock { $0.isJoined = true } }
        handle { machine, now in
            switch arrived {
            case .device(let arrived): machine.loaded(.page(arrived.page), at: now)
            case .unknownDevice: machine.loaded(.deviceGone, at: now)
            case .failed(let fault): machine.loadFailed(fault)
            }
        }
    }

    private func arrive(_ load: PageRequest) async -> Arrived {
        let hash = device.credentialHash
        do throws(HomeFault) {
            return try await homes.arrive(
                .id(device.id, credential: hash), .credential(hash), load, speaking: version, as: self)
        } catch {
            return .failed(StoreFault(error, logger: logger))
        }
    }

    /// Ends the feed with its request. ``begin()`` must have returned.
    func finish() {
        leave()
        handle { machine, _ in machine.disconnected() }
        state.withLock { $0.isOpen = false }
        // The session can have arrived at another home meanwhile.
        leave()
        output.finish()
    }

    private func leave() {
        let wasJoined = state.withLock { state in
            defer { state.isJoined = false }
            return state.isJoined
        }
        if wasJoined { homes.home(of: device.serial).leave(self, of: device.serial) }
    }

    // MARK: The output

    /// Whether an envelope from ``batches`` must still be written. It can have been withdrawn, expired or taken back meanwhile.
    /// If this function returns true, the envelope counts as written.
    func isWanted(_ envelope: Envelope) -> Bool {
        let isExpired = !envelope.isVolatile && envelope.isExpired(at: time.now())
        return state.withLock { state in
            if let copies = state.takenBack[envelope.id] {
                state.takenBack[envelope.id] = copies > 1 ? copies - 1 : nil
                return false
            }
            guard !isExpired, state.machine.holds(envelope.id) else { return false }
            state.written = max(state.written, envelope.position)
            return true
        }
    }

    /// An envelope was written to the peer, or is no longer needed.
    func done(with envelope: Envelope) {
        let resumes = state.withLock { state in
            state.waitingBytes -= envelope.byteCount
            guard state.isPaused, state.waitingBytes <= outputBytes / 4 else { return false }
            state.isPaused = false
            return true
        }
        if resumes { handle { machine, now in machine.outputResumed(at: now) } }
    }

    func keepAlive() { output.yield(Batch(items: [.keepAlive])) }

    // MARK: Changes of the inbox

    func offer(_ envelope: Envelope) {
        handle { machine, now in machine.offered(envelope, isVolatile: false, at: now) }
    }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        answer(handle { machine, now in machine.offered(envelope, isVolatile: true, at: now) })
    }

    func storedMore() { handle { machine, now in machine.storedMore(at: now) } }

    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        handle { machine, _ in machine.withdrew(withdrawal) }
        done()
    }

    func finished(_ ids: [MessageID]) { handle { machine, _ in ids.flatMap { machine.finished($0) } } }

    func end(because reason: SessionEnd) { output.yield(Batch(items: [.ended(reason)])) }

    // MARK: Another home

    func moving(done: @escaping @Sendable () -> Void) {
        let lost = state.withLock { state -> [DeliveryMachine.Action] in
            guard state.isOpen else { return [] }
            state.machine.moving()
            let (envelopes, lost) = state.machine.takeBack(after: state.written)
            for envelope in envelopes { state.takenBack[envelope, default: 0] += 1 }
            return lost
        }
        perform(lost)
        done()
    }

    func moved(_ end: MoveEnd) {
        switch end {
        case .stays: handle { machine, now in machine.moved(at: now) }
        case .gone: self.end(because: .moved)
        case .arrives(let again):
            guard state.withLock({ $0.isOpen }) else { return }
            // The task ends with the answer of the home.
            Task {
                let arrived = await again()
                let isOpen = state.withLock { state in
                    // The answer of the former home can have been lost.
                    if case .joined = arrived, state.isOpen { state.isJoined = true }
                    return state.isOpen
                }
                // The session ended meanwhile, possibly before its arrival.
                if !isOpen { homes.home(of: device.serial).leave(self, of: device.serial) }
                handle { machine, now in
                    switch arrived {
                    case .joined: machine.arrivedAgain(at: now)
                    case .deviceGone: machine.loaded(.deviceGone, at: now)
                    case .failed(let fault): machine.loadFailed(fault)
                    }
                }
            }
        }
    }

    // MARK: Actions of the machine

    /// Returns whether an offered envelope of TTL 0 was delivered.
    @discardableResult
    private func handle(_ event: (inout DeliveryMachine, Timestamp) -> [DeliveryMachine.Action]) -> Bool {
        var wasAccepted = false
        let rest = state.withLock { state -> [DeliveryMachine.Action] in
            guard state.isOpen else { return [] }
            var (items, rest): ([Item], [DeliveryMachine.Action]) = ([], [])
            for action in event(&state.machine, time.now()) {
                switch action {
                case .deliver(let envelope):
                    items.append(.envelope(envelope))
                    given(envelope, &state)
                case .caughtUp: items.append(.caughtUp)
                case .end(.deviceGone): items.append(.ended(.deviceGone))
                case .end(.failed(let fault)): items.append(.failed(fault))
                case .answerOffer(let answer): wasAccepted = answer
                case .load, .finish: rest.append(action)
                }
            }
            if !items.isEmpty { output.yield(Batch(items: items)) }
            if items.last?.isLast == true { output.finish() }
            return rest
        }
        perform(rest)
        return wasAccepted
    }

    private func perform(_ actions: [DeliveryMachine.Action]) {
        for action in actions {
            switch action {
            case .load(let load): start(load)
            case .finish(let id, let outcome):
                homes.home(of: device.serial).finish(EnvelopeAnswer(id, outcome), of: device.serial)
            default: break
            }
        }
    }

    private func given(_ envelope: Envelope, _ state: inout State) {
        state.waitingBytes += envelope.byteCount
        guard !state.isPaused, state.waitingBytes > outputBytes else { return }
        state.isPaused = true
        state.machine.outputPaused()
    }

    private func start(_ load: PageRequest) {
        // The task ends with the answer of the store.
        Task {
            let result = await homes.load(load, of: device.serial, logger: logger)
            handle { machine, now in
                switch result {
                case .success(let read): machine.loaded(read, at: now)
                case .failure(let fault): machine.loadFailed(fault)
                }
            }
        }
    }
}
