import CarillonBasics
import CarillonMessages
import CarillonWire
import GRDB
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Runs the session. Each step passes one fact to the session, and its changes are stored before its effects are visible.
///
/// All steps run on the queue of the store, in the order of the calls. Steps that wait together share one transaction. A step
/// changes a copy of the session. When the transaction has succeeded, the copy replaces the session, and the runner performs the
/// actions: it sends frames, fills the read queues of channels, and posts the availability. If the transaction fails, nothing has
/// changed.
final class SessionRunner: Sendable {
    /// The values that a step can read beside the session.
    struct Context {
        let now: ContinuousClock.Instant
        /// A random number from 0 up to 1.
        let random: Double
        fileprivate let database: Database

        func answer(to id: String) throws(PushError) -> Int? { try ClientStore.answer(to: id, in: database) }

        func firingStarts(of id: String) throws(PushError) -> Int {
            try ClientStore.firingStarts(of: id, in: database)
        }

        func isStored(_ message: BufferedMessage) throws(PushError) -> Bool {
            try ClientStore.isStored(message.position, in: database)
        }
    }

    typealias Change = @Sendable (inout ClientSession, Context) throws(PushError) -> [SessionAction]

    /// The callers of the session outside of this type. They are set once, before the client runs.
    struct Listeners: Sendable {
        /// Sends requests about the device and its user to the server.
        var registrar: ClientRegistrar?
        /// Called if ``ClientSession/updateScope`` has changed.
        var scopeChanged: (@Sendable () -> Void)?
        /// Called with the revision of the offered services that the server has, and whether the server was restored.
        var servicesRevisionReported: (@Sendable (String?, Bool) -> Void)?
    }

    let store: ClientStore
    let logger: Logger
    let current: Mutex<ClientSession>
    let connection = Mutex<WebSocketConnection?>(nil)
    let channels: Mutex<LocalChannels>
    let listeners = Mutex(Listeners())
    private let steps = StepQueue()
    private let alarm = Mutex(Alarm<Scheduled<Void>>())

    let availability = AvailabilityBoard()
    let deviceListeners = PushDeviceListeners()
    let subscriptions: NotificationSubscriptions
    let firings: FiringQueue
    let catchUps = CatchUps()
    let failures: FailureNote
    let requester: SocketRequester
    let starts: MessageStarts
    let firingStarts: FiringStarts
    /// Finds the entry that ends the process among messages, updates, requests, results and firings.
    let suspects: SuspectTurns

    /// Signals that the connection loop may have work. One loop at a time waits for it.
    let wakes = Signal()
    /// Signals that ``ClientSession/updateScope`` may have changed. Only the run of updates waits for it.
    let updateChanges = Signal()
    /// Signals that requests or results of services may have arrived. Only the run of services waits for it.
    let serviceChanges = Signal()
    let serviceActivity = WakeActivity()
    /// Signals that the providers of services may have changed. Only the run of services waits for it.
    let providerChanges = Signal()

    /// The folder that the app shares with its notification service extension.
    let shared: SharedFolder?
    let sharedKeys = Mutex(SharedKeys())

    init(store: ClientStore, session: ClientSession, shared: SharedFolder? = nil, logger: Logger) {
        self.store = store
        self.shared = shared
        channels = Mutex(LocalChannels(storedBefore: session.messages.buffers.mapValues(\.lastPosition)))
        current = Mutex(session)
        self.logger = logger
        let suspects = SuspectTurns()
        self.suspects = suspects
        starts = MessageStarts(suspects)
        firingStarts = FiringStarts(suspects)
        failures = FailureNote(logger: logger)
        let own = WeakRunner()
        let listeners = deviceListeners
        subscriptions = NotificationSubscriptions(shared: shared) { request in
            own.runner?.begin({ session, _ in session.requested(request) }) { _ in }
        } notify: { events in
            listeners.notify(events)
        } connect: {
            // The step stores nothing and cannot fail.
            own.runner?.begin({ session, _ in session.deviceRequested() }) { _ in }
        }
        requester = SocketRequester { request in own.runner?.send(.request(request)) }
        firings = FiringQueue(
            .init(
                begins: { entry, isOver in await own.runner?.beginFiring(entry, isOver: isOver) ?? false },
                handled: { entry in own.runner?.firingHandled(entry) },
                abandoned: { entry in own.runner?.firingAbandoned(entry) }))
        firings.setPaused(session.user.isOtherPending)
        own.set(self)
        shareKeys()
    }

    deinit {
        firings.endIterations()
        alarm.withLock { $0.take()?.cancel() }
    }

    // MARK: Steps

    /// The session at this moment.
    var session: ClientSession { current.withLock { $0 } }

    /// Performs a step, and returns when its changes are stored and its actions are performed. Cancellation of the task does not
    /// cancel the step.
    func perform(mustReachDisk: Bool = true, _ change: @escaping Change) async throws(PushError) {
        let result: Result<Void, PushError> = await withCheckedContinuation { continuation in
            begin(mustReachDisk: mustReachDisk, change) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// Adds a step to the queue. Calls `done` when the step was performed or has failed.
    func begin(
        mustReachDisk: Bool = true, _ change: @escaping Change,
        done: @escaping @Sendable (Result<Void, PushError>) -> Void
    ) {
        if steps.append(.init(change: change, mustReachDisk: mustReachDisk, done: done)) {
            store.schedule { self.performSteps($0) }
        }
    }

    /// Requests or results of services may have arrived.
    func wakeServices() {
        serviceActivity.arrived()
        serviceChanges.send()
    }

    /// Repeats work that failed because of the storage, when the storage works again or after 10 seconds.
    func again(_ body: @escaping @Sendable (SessionRunner) -> Void) {
        // Ends after the wait.
        Task { [health, weak self] in
            try await health.wait(atMost: Self.retryInterval)
            // The queue of the store writes files in order.
            self?.store.schedule { [weak self] _ in
                if let self { body(self) }
            }
        }
    }

    private static let retryInterval = Duration.seconds(10)

    var health: StorageHealth { store.health }

    // MARK: Iterations

    /// The client stopped. Returns the parameter of ``endIterations(_:)``.
    func endRun() -> [(queue: ChannelReadQueue, run: UInt64)] {
        stopStarts()
        return channels.withLock { $0.readQueues }.map { ($0, $0.endRun()) }
    }

    /// Ends the iterations that began before ``endRun()``.
    func endIterations(_ runs: [(queue: ChannelReadQueue, run: UInt64)]) {
        for (queue, run) in runs { queue.endIterations(of: run) }
        firings.endIterations()
    }

    // MARK: The store's queue

    /// Waits until the steps that began before are stored, such as starts that are taken back. The process can end then.
    func flush() async {
        // The step stores nothing and cannot fail.
        try? await perform(mustReachDisk: false) { _, _ in [] }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            store.schedule { _ in continuation.resume() }
        }
    }

    private func performSteps(_ database: Database) {
        let (group, isMoreWaiting) = steps.takeGroup()
        if isMoreWaiting { store.schedule { self.performSteps($0) } }
        if !take(group, database) {
            // One step must not make the others fail.
            for step in group { _ = take([step], isLastTry: true, database) }
        }
    }

    /// Performs steps in one transaction. If it fails and each step can be tried alone, returns false and has changed nothing.
    private func take(_ group: [StepQueue.Step], isLastTry: Bool = false, _ database: Database) -> Bool {
        var batch = StepBatch(session)
        do {
            try store.transaction(reachingDisk: group.contains(where: \.mustReachDisk), in: database) {
                for step in group {
                    let context = Context(now: .now, random: .random(in: 0..<1), database: database)
                    let changes = batch.take { session throws(PushError) in try step.change(&session, context) }
                    for change in changes { try change.apply(to: database) }
                }
            }
        } catch {
            guard isLastTry || group.count == 1 else { return false }
            for step in group { step.done(.failure(error)) }
            return true
        }
        current.withLock { $0 = batch.session }
        if batch.isScopeChanged {
            updateChanges.send()
            listeners.withLock { $0.scopeChanged }?()
        }
        for action in batch.actions { carryOut(action) }
        // The actions have dropped the firings of a former user.
        if batch.isUserChanged { firings.setPaused(batch.session.user.isOtherPending) }
        if let deadline = batch.session.deadline { setAlarm(at: deadline) }
        for (step, result) in zip(group, batch.results) { step.done(result) }
        return true
    }

    // MARK: Time

    private func setAlarm(at deadline: ContinuousClock.Instant) {
        alarm.withLock { alarm in
            let former = alarm.set(for: deadline) {
                let wait = TimeAmount(max(.zero, deadline - .now))
                return MultiThreadedEventLoopGroup.singleton.next().scheduleTask(in: wait) { [weak self] () -> Void in
                    self?.alarmFired()
                }
            }
            former?.cancel()
        }
    }

    private func alarmFired() {
        alarm.withLock { _ = $0.take() }
        begin({ session, context in session.timerFired(at: context.now) }) { [weak self] result in
            guard let self, case .failure(let error) = result else { return }
            logger.error("A deadline could not be kept", metadata: ["error": "\(error)"])
            // The storage fails. An immediate attempt would fail as well.
            setAlarm(at: .now + .seconds(1))
        }
    }
}

/// A weak reference, for the objects that the runner owns.
private final class WeakRunner: Sendable {
    private struct Reference { weak var runner: SessionRunner? }
    private let reference = Mutex(Reference())

    var runner: SessionRunner? { reference.withLock { $0.runner } }
    func set(_ runner: SessionRunner) { reference.withLock { $0.runner = runner } }
}
