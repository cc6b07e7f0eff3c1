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

    private let store: ClientStore
    private let session: Mutex<ClientSession>
    private let connection = Mutex<WebSocketConnection?>(nil)
    private let steps = StepQueue()
    private let inboxes = Mutex<[String: ChannelInbox]>([:])
    private let watchers = Mutex<[String: [UInt64: AsyncStream<ChannelMachine>.Continuation]]>([:])
    /// The newest message of each channel that an earlier run stored.
    private let storedBefore: [String: Int64]
    private let liveIdentifiers = Mutex<Set<String>>([])
    private let tokenDeliverers = Mutex<[String: PushChannel.TokenDeliverer]>([:])
    /// The channels of which it was said that nobody reads them.
    private let warned = Mutex<Set<String>>([])
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
    let asks: SocketAsks
    let starts: MessageStarts
    let firingStarts: FiringStarts
    /// For messages, updates, requests, results and firings: an entry that ends the process is found among those of all kinds.
    let suspects: SuspectTurns

    /// What the app shares with its notification service extension.
    private let shared: SharedFolder?
    /// What lies in it.
    private let sharedKeys = Mutex<[ChannelID: SubscriptionKeys]>([:])

    init(store: ClientStore, session: ClientSession, shared: SharedFolder? = nil, logger: Logger) {
        self.store = store
        self.shared = shared
        storedBefore = session.buffers.mapValues(\.lastPosition)
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
        } tell: { events in
            listeners.tell(events)
        } want: {
            // Nothing is written, so that nothing can fail.
            own.runner?.begin({ session, _ in session.deviceWanted() }) { _ in }
        }
        asks = SocketAsks { request in own.runner?.send(.request(request)) }
        firings = FiringQueue(
            .init(
                begins: { entry, isOver in await own.runner?.beginFiring(entry, isOver: isOver) ?? false },
                handled: { entry in own.runner?.firingHandled(entry) },
                brokeOff: { entry in own.runner?.firingBrokeOff(entry) }))
        own.set(self)
        shareKeys(of: session, isFirst: true)
    }

    deinit {
        firings.endIterations()
        alarm.withLock { $0?.task.cancel() }
    }

    // MARK: Reading

    var move: SessionMove { session.withLock { $0.move } }

    var deviceID: String? { session.withLock { $0.identity?.device } }

    var identity: DeviceIdentity? { session.withLock { $0.identity } }

    var updateScope: UpdateScope {
        session.withLock { UpdateScope(identity: $0.identity, user: $0.takenUser, isUserPending: $0.user != nil) }
    }

    /// How long it is until the next attempt to connect; nil when none is due.
    var retryDelay: Duration? {
        session.withLock { session in
            guard case .waiting(let until) = session.phase else { return nil }
            return max(.zero, until - .now)
        }
    }

    /// Whether something runs the session.
    var isRunning: Bool { session.withLock { $0.phase != .stopped } }

    /// Whether messages can arrive.
    var isLive: Bool { session.withLock { $0.phase == .live } }

    var device: PushDeviceMachine { session.withLock { $0.device } }

    var isUserPending: Bool { session.withLock { $0.user != nil } }

    /// The number of what the app said of its user, until the server answers; nil if the app named the user whom the server knows.
    var pendingUserNumber: UInt64? {
        session.withLock { session in
            session.user?.mayDiffer(from: session.takenUser) == true ? session.userNumbers.said : nil
        }
    }

    /// Whether the app named another user, of whom the server did not hear yet.
    var isOtherUserPending: Bool { pendingUserNumber != nil }

    /// The number of what the server took last of the user.
    var takenUserNumber: UInt64 { session.withLock { $0.userNumbers.taken } }

    func channel(_ identifier: String) -> ChannelMachine {
        session.withLock { $0.channels[identifier] } ?? ChannelMachine()
    }

    func inbox(of identifier: String) -> ChannelInbox {
        inboxes.withLock { inboxes in
            if let inbox = inboxes[identifier] { return inbox }
            let inbox = ChannelInbox(lastStored: storedBefore[identifier] ?? 0)
            inboxes[identifier] = inbox
            return inbox
        }
    }

    var farewells: [Farewell] { session.withLock { $0.farewells } }

    var registration: String? { session.withLock { $0.registration } }

    var renewal: String? { session.withLock { $0.renewal } }

    var summaries: [PushChannelSummary] {
        let (channels, buffers) = session.withLock { ($0.channels, $0.buffers) }
        return Set(channels.keys).union(buffers.filter { $0.value.messages > 0 }.keys).sorted().map { identifier in
            PushChannelSummary(
                identifier: identifier, state: PushChannelState(channels[identifier]?.state ?? .none),
                waitingMessages: buffers[identifier]?.messages ?? 0, waitingBytes: buffers[identifier]?.bytes ?? 0,
                isBeingRead: inbox(of: identifier).isHeld)
        }
    }

    /// Whether messages wait of a channel that the app reads.
    var isHandlingMessages: Bool { summaries.contains { $0.isBeingRead && $0.waitingMessages > 0 } }

    // MARK: Changes

    /// What a channel is, and then each time what it has become; a slow reader misses what was between.
    func changes(of identifier: String) -> ChannelChanges {
        let (stream, watcher) = AsyncStream.makeStream(of: ChannelMachine.self, bufferingPolicy: .bufferingNewest(1))
        let number = UInt64.random(in: .min ... .max)
        watchers.withLock { watchers in
            watchers[identifier, default: [:]][number] = watcher
            // Under the lock, so that what is posted meanwhile comes after it.
            watcher.yield(channel(identifier))
        }
        return ChannelChanges(identifier: identifier, number: number, stream: stream)
    }

    func stopChanges(_ changes: ChannelChanges) {
        let watcher = watchers.withLock { $0[changes.identifier]?.removeValue(forKey: changes.number) }
        watcher?.finish()
    }

    private func post(_ channel: ChannelMachine, of identifier: String) {
        watchers.withLock { watchers in
            for watcher in (watchers[identifier] ?? [:]).values { watcher.yield(channel) }
        }
    }

    // MARK: Identifiers

    /// Answers false when a living channel has the identifier.
    func identifierTaken(_ identifier: String) -> Bool {
        liveIdentifiers.withLock { $0.insert(identifier).inserted }
    }

    func identifierReleased(_ identifier: String) {
        liveIdentifiers.withLock { _ = $0.remove(identifier) }
    }

    func makeChannelID() -> ChannelID {
        var generator = SystemRandomNumberGenerator()
        return .random(using: &generator)
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

    /// The app is done with a message.
    func handled(_ message: BufferedMessage, on identifier: String, failure: Int?) async throws(PushError) {
        try await perform(mustReachDisk: false) { session, context throws(PushError) in
            session.messageHandled(
                message, of: identifier, failure: failure, isStored: try context.isStored(message))
        }
        starts.handled(message)
        inbox(of: identifier).remove(.message(message))
        shared?.forgetShown(MessageHash.text(of: message.id))
    }

    /// Whether the extension showed a message.
    func wasPresented(_ id: String) -> Bool { shared?.wasShown(MessageHash.text(of: id)) ?? false }

    /// The extension has the keys of channels that are open, or may be again; what ended is opened by nobody any more.
    private func shareKeys(of session: ClientSession, isFirst: Bool = false) {
        guard shared != nil else { return }
        var keys: [ChannelID: SubscriptionKeys] = [:]
        for channel in session.channels.values {
            guard let id = channel.channelID else { continue }
            switch channel.state {
            case .connecting, .open, .disconnecting: keys[id] = channel.keys
            case .none, .closed, .error: break
            }
        }
        let isChanged = sharedKeys.withLock { known in
            defer { known = keys }
            return known != keys
        }
        guard isChanged || isFirst else { return }
        do {
            try shared?.replaceKeys(keys)
        } catch {
            logger.error(
                "cannot write the directory that is shared with the extension; retrying", metadata: ["reason": "\(error)"])
            again { runner in runner.shareKeys(of: runner.session.withLock { $0 }, isFirst: true) }
        }
    }

    /// A page of what is stored for a channel.
    func messages(of identifier: String, after position: Int64) async throws(PushError) -> [BufferedMessage] {
        let result: Result<[BufferedMessage], PushError> = await withCheckedContinuation { continuation in
            store.schedule { database in
                continuation.resume(
                    returning: Result { () throws(PushError) in
                        try ClientStore.messages(of: identifier, after: position, in: database)
                    })
            }
        }
        return try result.get()
    }

    var health: StorageHealth { store.health }

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

    func setTokenDelivery(_ deliver: PushChannel.TokenDeliverer?, of identifier: String) {
        tokenDeliverers.withLock { $0[identifier] = deliver }
        let isSet = deliver != nil
        // Nothing is written, so that nothing can fail.
        begin({ session, context in session.tokenDeliverySet(identifier, isSet: isSet, at: context.now) }) { _ in }
    }

    private func deliver(_ address: PushChannelAddress, of identifier: String) {
        guard let deliver = tokenDeliverers.withLock({ $0[identifier] }) else { return }
        // Ends with the app's hook, which is asked for one address at a time.
        Task {
            do {
                try await deliver(address)
                try await perform { session, context in
                    session.tokenDelivered(identifier, token: address.token, at: context.now)
                }
            } catch {
                logger.info(
                    "The token was not delivered", metadata: ["channel": "\(identifier)", "reason": "\(type(of: error))"])
                // Nothing is written by this.
                try? await perform { session, context in
                    session.tokenDeliveryFailed(identifier, at: context.now, random: context.random)
                }
            }
        }
    }

    /// Who says reports to the server; set once, before anything runs.
    private let deviceReporter = Mutex<ClientRegistrar?>(nil)

    /// Hears when ``updateScope`` is another; set once, before anything runs.
    private let scopeListener = Mutex<(@Sendable () -> Void)?>(nil)

    func setScopeListener(_ listener: @escaping @Sendable () -> Void) { scopeListener.withLock { $0 = listener } }

    /// Hears under which name the server has the offered services, and whether it was restored; set once, before anything runs.
    private let servicesListener = Mutex<(@Sendable (String?, Bool) -> Void)?>(nil)

    func setServicesListener(_ listener: @escaping @Sendable (String?, Bool) -> Void) {
        servicesListener.withLock { $0 = listener }
    }

    var namesRevisions: Bool { session.withLock { $0.namesRevisions } }

    func setDeviceReporter(_ registrar: ClientRegistrar) { deviceReporter.withLock { $0 = registrar } }

    /// Sends on the live connection, beside what waits for the disk.
    private func send(_ frame: ClientFrame) {
        session.withLock { session in
            guard session.phase == .live else { return }
            connection.withLock { $0 }?.send(frame.text)
        }
    }

    private func tell(_ fact: SubscriptionFact) {
        switch fact {
        case .connected(let version, let isRestored):
            subscriptions.connected(version: version, isRestored: isRestored)
        case .paused:
            asks.disconnected()
            subscriptions.disconnected()
        case .disconnected:
            asks.disconnected()
            firings.disconnected()
            subscriptions.disconnected()
        case .signedOut:
            asks.disconnected()
            firings.disconnected()
            subscriptions.signedOut()
        case .deviceLost:
            asks.disconnected()
            subscriptions.deviceLost()
        case .answered(let answer): subscriptions.answered(answer)
        case .fired(let firing, let starts):
            guard firings.add(firing, starts: starts) else { return }
            catchUps.took()
            subscriptions.fired(firing.subscriptionID, at: firing.milliseconds)
        }
    }

    private func report(_ report: PushDeviceMachine.Report, _ identity: DeviceIdentity) {
        guard let registrar = deviceReporter.withLock({ $0 }) else { return }
        // Ends with one request, which has a time limit.
        Task {
            var retryAfter: Duration?
            do throws(PushError) {
                switch await registrar.report(report, identity) {
                case .taken(let status, let since):
                    failures.answered(at: registrar.server)
                    return try await perform { session, context in
                        session.reportTaken(report, of: identity, status, since: since, at: context.now)
                    }
                case .failed(.refused, let error):
                    failures.note(error)
                    logger.error("The server refused the push token", metadata: ["reason": "\(error)"])
                    return try await perform { session, context in
                        session.reportRefused(report, of: identity, error, at: context.now)
                    }
                case .failed(let failure, let error):
                    failures.failed(at: registrar.server, by: .http, error)
                    failures.willRetry(at: registrar.server)
                    if case .unavailable(let after) = failure { retryAfter = after }
                }
            } catch {
                failures.note(error)
                logger.error("What the server said of the push token could not be stored", metadata: ["error": "\(error)"])
            }
            let wait = retryAfter
            // Nothing is written by this.
            try? await perform { session, context in
                session.reportFailed(retryAfter: wait, at: context.now, random: context.random)
            }
        }
    }

    private func report(_ word: UserWord, _ identity: DeviceIdentity) {
        guard let registrar = deviceReporter.withLock({ $0 }) else { return }
        // Ends with one request, which has a time limit.
        Task {
            var retryAfter: Duration?
            do throws(PushError) {
                switch await registrar.report(word, identity) {
                case .done(let name):
                    failures.answered(at: registrar.server)
                    return try await perform { session, context in
                        session.userTaken(word, of: identity, as: name, at: context.now)
                    }
                case .failed(.refused, let error):
                    failures.note(error)
                    logger.error("The server refused the user token", metadata: ["reason": "\(error)"])
                    return try await perform { session, context in
                        session.userRefused(word, of: identity, error, at: context.now)
                    }
                case .failed(let failure, let error):
                    failures.failed(at: registrar.server, by: .http, error)
                    failures.willRetry(at: registrar.server)
                    if case .unavailable(let after) = failure { retryAfter = after }
                }
            } catch {
                failures.note(error)
                logger.error("What the server said of the user could not be stored", metadata: ["error": "\(error)"])
            }
            let wait = retryAfter
            // Nothing is written by this.
            try? await perform { session, context in
                session.userReportFailed(retryAfter: wait, at: context.now, random: context.random)
            }
        }
    }

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
        for action in actions { perform(action) }
        setAlarm(at: next.deadline)
        for (step, result) in zip(group, results) { step.done(result) }
        return true
    }

    private func perform(_ action: SessionAction) {
        switch action {
        case .write(.saveChannel(let identifier, let channel)):
            shareKeys(of: session.withLock { $0 })
            post(channel, of: identifier)
        case .write(.removeChannel(let identifier)):
            shareKeys(of: session.withLock { $0 })
            post(ChannelMachine(), of: identifier)
        case .write: break
        case .send(let frame): connection.withLock { $0 }?.send(frame.text)
        case .closeSocket(let code): connection.withLock { $0 }?.close(code: code)
        case .deliver(let action, let identifier): inbox(of: identifier).append(action)
        case .deliverMessage(let message, let identifier):
            catchUps.took()
            inbox(of: identifier).append(message)
        case .dropMessages(let identifier): inbox(of: identifier).removeMessages()
        case .tellAvailability(let present):
            if present.service { failures.becameLive() }
            availability.post(present)
        case .deliverToken(let address, let identifier): deliver(address, of: identifier)
        case .noteUndecryptable(let id, let identifier, let fault):
            logger.warning(
                "A message could not be decrypted",
                metadata: ["id": "\(id)", "channel": "\(identifier)", "reason": "\(fault.rawValue)"])
        case .lookForReader(let identifier, let waiting):
            guard !inbox(of: identifier).isHeld, warned.withLock({ $0.insert(identifier).inserted }) else { break }
            logger.warning(
                "Nobody reads the events of a channel; iterate them, or disconnect or discard the channel",
                metadata: ["channel": "\(identifier)", "waiting": "\(waiting)"])
        case .noteFullBuffer(let identifier, let waiting):
            let fault = PushError(
                .bufferFull,
                "The buffer of the channel \"\(identifier)\" is full with \(waiting) messages that the app has not handled; what comes for it is refused."
            )
            failures.note(fault)
            logger.warning(
                "A channel's buffer is full, and messages for it are refused",
                metadata: ["channel": "\(identifier)", "waiting": "\(waiting)"])
        case .noteCrashingFiring(let firing, let starts): noteCrashing(firing, starts: starts)
        case .noteFailure(let code, let message):
            failures.obstructed(PushError(code, message))
        case .reportDevice(let report, let identity): self.report(report, identity)
        case .reportUser(let word, let identity): report(word, identity)
        case .tellDevice(let events): deviceListeners.tell(events)
        case .tellSubscriptions(let fact): tell(fact)
        case .tellServices:
            catchUps.took()
            lookForServiceEvents()
        case .tellProviders: providerChanges.send()
        case .tellServicesRevision(let revision, let isRestored): servicesListener.withLock { $0 }?(revision, isRestored)
        case .openAsks: asks.connected()
        case .tellAsks(let answer): asks.answered(answer)
        case .markInstall(let device): markInstall(device)
        case .noteCaughtUp:
            catchUps.caughtUp()
            // What was said while nobody listened.
            providerChanges.send()
        case .wake: wakes.send()
        }
    }

    private func markInstall(_ device: String) {
        do {
            try store.marker.put(for: device)
        } catch {
            // A run that begins without the mark takes itself for one from a backup.
            logger.warning("cannot mark the install; retrying", metadata: ["reason": "\(error)"])
            again { runner in
                if runner.deviceID == device { runner.markInstall(device) }
            }
        }
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
