import CarillonBasics
import CarillonMessages
import CarillonWire
import GRDB
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Runs the session: one fact at a time, each a step that is durable before anything of it can be seen.
///
/// All steps run on the store's queue, in the order in which they were asked for; those that wait together share one
/// transaction. A step lets a copy of the session take in the fact and writes what must be durable; when the transaction is
/// done, the copy becomes the truth, and the rest is done: frames are sent, inboxes filled, the availability posted. When it
/// fails, nothing has happened.
final class SessionRunner: Sendable {
    /// What a step may know beside the session.
    struct Context {
        let now: ContinuousClock.Instant
        /// From 0 up to 1.
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

    let availability = AvailabilityBoard()
    let deviceListeners = PushDeviceListeners()
    let subscriptions: NotificationSubscriptions
    let firings: FiringQueue
    let catchUps = CatchUps()
    let failures: FailureNote
    let logger: Logger

    let store: ClientStore
    let session: Mutex<ClientSession>
    let connection = Mutex<WebSocketConnection?>(nil)
    private let steps = StepQueue()
    let inboxes = Mutex<[String: ChannelInbox]>([:])
    let watchers = Mutex<[String: [UInt64: AsyncStream<ChannelMachine>.Continuation]]>([:])
    /// The newest message of each channel that an earlier run stored.
    let storedBefore: [String: Int64]
    let liveIdentifiers = Mutex<Set<String>>([])
    let tokenDeliverers = Mutex<[String: PushChannel.TokenDeliverer]>([:])
    /// The channels of which it was said that nobody reads them.
    let warned = Mutex<Set<String>>([])
    private let alarm = Mutex<(at: ContinuousClock.Instant, task: Scheduled<Void>)?>(nil)
    /// Says that there may be something to do beside the socket. Awaited by one loop at a time.
    let wakes = Signal()
    /// Says that ``updateScope`` may be another. Awaited by the run of updates alone.
    let updateChanges = Signal()
    /// Says that something about requests of services came. Awaited by the run of services alone.
    let serviceChanges = Signal()
    let serviceActivity = WakeActivity()
    /// Says that others may provide services by now. Awaited by the run of services alone.
    let providerChanges = Signal()
    let asks: SocketRequester
    let starts: MessageStarts
    let firingStarts: FiringStarts
    /// For messages, updates, requests, results and firings: an entry that ends the process is found among those of all kinds.
    let suspects: SuspectTurns

    /// What the app shares with its notification service extension.
    let shared: SharedFolder?
    /// What lies in it.
    let sharedKeys = Mutex<[ChannelID: SubscriptionKeys]>([:])

    init(store: ClientStore, session: ClientSession, shared: SharedFolder? = nil, logger: Logger) {
        self.store = store
        self.shared = shared
        storedBefore = session.messages.buffers.mapValues(\.lastPosition)
        self.session = Mutex(session)
        self.logger = logger
        let suspects = SuspectTurns()
        self.suspects = suspects
        starts = MessageStarts(suspects)
        firingStarts = FiringStarts(suspects)
        failures = FailureNote(logger: logger)
        let own = WeakRunner()
        let listeners = deviceListeners
        subscriptions = NotificationSubscriptions(shared: shared) { request in
            own.runner?.begin({ session, _ in session.asked(request) }) { _ in }
        } notify: { events in
            listeners.notify(events)
        } want: {
            // Nothing is written, so that nothing can fail.
            own.runner?.begin({ session, _ in session.deviceWanted() }) { _ in }
        }
        asks = SocketRequester { request in own.runner?.send(.request(request)) }
        firings = FiringQueue(
            .init(
                begins: { entry, isOver in await own.runner?.beginFiring(entry, isOver: isOver) ?? false },
                handled: { entry in own.runner?.firingHandled(entry) },
                brokeOff: { entry in own.runner?.firingBrokeOff(entry) }))
        firings.setPaused(session.user.isOtherPending)
        own.set(self)
        shareKeys(of: session, isFirst: true)
    }

    deinit {
        firings.endIterations()
        alarm.withLock { $0?.task.cancel() }
    }

    // MARK: Steps

    /// Takes in a fact and returns when it is durable and done. Not cancelled with the task: a step is whole.
    func perform(mustReachDisk: Bool = true, _ change: @escaping Change) async throws(PushError) {
        let result: Result<Void, PushError> = await withCheckedContinuation { continuation in
            begin(mustReachDisk: mustReachDisk, change) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// Takes in a fact when its turn comes, and says then whether it could be stored.
    func begin(
        mustReachDisk: Bool = true, _ change: @escaping Change,
        done: @escaping @Sendable (Result<Void, PushError>) -> Void
    ) {
        if steps.append(.init(change: change, mustReachDisk: mustReachDisk, done: done)) {
            store.schedule { self.takeSteps($0) }
        }
    }

    /// Something about requests of services may have come.
    func lookForServiceEvents() {
        serviceActivity.arrived()
        serviceChanges.send()
    }

    /// Does something again that the storage prevented, once it may work.
    func again(_ body: @escaping @Sendable (SessionRunner) -> Void) {
        // Ends after the wait.
        Task { [health, weak self] in
            try await health.wait(atMost: Self.retryInterval)
            // On the queue of the storage, where files are written in their order.
            self?.store.schedule { [weak self] _ in
                if let self { body(self) }
            }
        }
    }

    private static let retryInterval = Duration.seconds(10)

    /// Who says reports to the server; set once, before anything runs.
    let deviceReporter = Mutex<ClientRegistrar?>(nil)

    /// Hears when ``updateScope`` is another; set once, before anything runs.
    let scopeListener = Mutex<(@Sendable () -> Void)?>(nil)

    func setScopeListener(_ listener: @escaping @Sendable () -> Void) { scopeListener.withLock { $0 = listener } }

    /// Hears under which name the server has the offered services, and whether it was restored; set once, before anything runs.
    let servicesListener = Mutex<(@Sendable (String?, Bool) -> Void)?>(nil)

    func setServicesListener(_ listener: @escaping @Sendable (String?, Bool) -> Void) {
        servicesListener.withLock { $0 = listener }
    }

    var namesRevisions: Bool { session.withLock { $0.namesRevisions } }

    func setDeviceReporter(_ registrar: ClientRegistrar) { deviceReporter.withLock { $0 = registrar } }

    /// Begins to send on a connection.
    func attach(_ connection: WebSocketConnection) {
        self.connection.withLock { $0 = connection }
    }

    func detach() {
        connection.withLock { $0 = nil }
    }

    // MARK: Iterations

    /// The client stopped. Answers what `endIterations` takes.
    func endRun() -> [(inbox: ChannelInbox, run: UInt64)] {
        stopStarts()
        return inboxes.withLock { Array($0.values) }.map { ($0, $0.endRun()) }
    }

    /// Ends the iterations that began before.
    func endIterations(_ runs: [(inbox: ChannelInbox, run: UInt64)]) {
        for (inbox, run) in runs { inbox.endIterations(of: run) }
        firings.endIterations()
    }

    // MARK: The store's queue

    /// Waits until the storage has what was begun before, such as starts that are taken back: the process may end after that.
    func settle() async {
        // Nothing is written, so that nothing can fail.
        try? await perform(mustReachDisk: false) { _, _ in [] }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            store.schedule { _ in continuation.resume() }
        }
    }

    private func takeSteps(_ database: Database) {
        let (group, isMoreWaiting) = steps.takeGroup()
        if isMoreWaiting { store.schedule { self.takeSteps($0) } }
        if !take(group, database) {
            // What is wrong with one of them is no fault of the others.
            for step in group { _ = take([step], isLastTry: true, database) }
        }
    }

    /// Takes in facts together. Answers false, and has done nothing, when they could not be stored and may be one by one.
    private func take(_ group: [StepQueue.Step], isLastTry: Bool = false, _ database: Database) -> Bool {
        var next = session.withLock { $0 }
        let (user, takenUser) = (next.user.pending, next.user.taken)
        var actions: [SessionAction] = []
        var results: [Result<Void, PushError>] = []
        do {
            try store.transaction(reachingDisk: group.contains(where: \.mustReachDisk), in: database) {
                for step in group {
                    var changed = next
                    let context = Context(now: .now, random: .random(in: 0..<1), database: database)
                    let result = Result { () throws(PushError) in try step.change(&changed, context) }
                    results.append(result.map { _ in })
                    guard case .success(let wanted) = result else { continue }
                    for case .write(let change) in wanted { try change.apply(to: database) }
                    actions += wanted
                    next = changed
                }
            }
        } catch {
            guard isLastTry || group.count == 1 else { return false }
            for step in group { step.done(.failure(error)) }
            return true
        }
        let before = updateScope
        session.withLock { $0 = next }
        if updateScope != before {
            updateChanges.send()
            scopeListener.withLock { $0 }?()
        }
        for action in actions { carryOut(action) }
        // Firings of a former user are dropped by now.
        if next.user.pending != user || next.user.taken != takenUser { firings.setPaused(next.user.isOtherPending) }
        setAlarm(at: next.deadline)
        for (step, result) in zip(group, results) { step.done(result) }
        return true
    }

    // MARK: Time

    /// Sets the alarm. One that is too early is left alone: it finds nothing to do, and sets the next.
    private func setAlarm(at deadline: ContinuousClock.Instant?) {
        guard let deadline else { return }
        alarm.withLock { alarm in
            if let present = alarm, present.at <= deadline { return }
            alarm?.task.cancel()
            let wait = TimeAmount(max(.zero, deadline - .now))
            let task = MultiThreadedEventLoopGroup.singleton.next().scheduleTask(in: wait) { [weak self] () -> Void in
                self?.alarmWentOff()
            }
            alarm = (deadline, task)
        }
    }

    private func alarmWentOff() {
        alarm.withLock { $0 = nil }
        begin({ session, context in session.timerFired(at: context.now) }) { [weak self] result in
            guard let self, case .failure(let error) = result else { return }
            logger.error("A deadline could not be kept", metadata: ["error": "\(error)"])
            // The fault is the store's; looking again at once would not help.
            setAlarm(at: .now + .seconds(1))
        }
    }
}

/// What a runner owns reaches it by this.
private final class WeakRunner: Sendable {
    private struct Reference { weak var runner: SessionRunner? }
    private let reference = Mutex(Reference())

    var runner: SessionRunner? { reference.withLock { $0.runner } }
    func set(_ runner: SessionRunner) { reference.withLock { $0.runner = runner } }
}
