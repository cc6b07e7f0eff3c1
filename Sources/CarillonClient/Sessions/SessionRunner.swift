import CarillonWire
import GRDB
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Runs the session: one fact at a time, each a step that is durable before anything of it can be seen.
///
/// All steps run on the store's queue, in the order in which they were asked for. A step lets a copy of the session
/// take in the fact, writes what must be durable in one transaction, makes the copy the truth, and then does the rest:
/// sends frames, fills inboxes, posts the availability. When the transaction fails, nothing has happened.
final class SessionRunner: Sendable {
    /// What a step may know beside the session.
    struct Context {
        let now: ContinuousClock.Instant
        /// From 0 up to 1.
        let random: Double
        fileprivate let database: Database

        func handledCode(of id: String) throws(PushError) -> Int? {
            try ClientStore.handledCode(of: id, in: database)
        }
    }

    typealias Change = @Sendable (inout ClientSession, Context) throws(PushError) -> [SessionAction]

    let availability = AvailabilityBoard()
    let logger: Logger

    private let store: ClientStore
    private let session: Mutex<ClientSession>
    private let connection = Mutex<WebSocketConnection?>(nil)
    private let inboxes = Mutex<[String: ChannelInbox]>([:])
    private let liveIdentifiers = Mutex<Set<String>>([])
    private let tokenDeliverers = Mutex<[String: PushChannel.TokenDeliverer]>([:])
    private let alarm = Mutex<(at: ContinuousClock.Instant, task: Scheduled<Void>)?>(nil)
    /// Says that there may be something to do beside the socket. Awaited by one loop at a time.
    let wakes = SignalBox()

    init(store: ClientStore, session: ClientSession, logger: Logger) {
        self.store = store
        self.session = Mutex(session)
        self.logger = logger
    }

    deinit {
        alarm.withLock { $0?.task.cancel() }
    }

    // MARK: Reading

    var move: SessionMove { session.withLock { $0.move } }

    var deviceID: String? { session.withLock { $0.identity?.device } }

    func channel(_ identifier: String) -> ChannelMachine {
        session.withLock { $0.channels[identifier] } ?? ChannelMachine()
    }

    func inbox(of identifier: String) -> ChannelInbox {
        inboxes.withLock { inboxes in
            if let inbox = inboxes[identifier] { return inbox }
            let inbox = ChannelInbox()
            inboxes[identifier] = inbox
            return inbox
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
    func perform(_ change: @escaping Change) async throws(PushError) {
        let result: Result<Void, PushError> = await withCheckedContinuation { continuation in
            store.schedule { database in continuation.resume(returning: self.step(change, database)) }
        }
        try result.get()
    }

    func answer(_ message: HandledMessage, on identifier: String) async throws(PushError) {
        try await perform { session, _ in session.messageHandled(message) }
        inbox(of: identifier).remove(messageID: message.id)
    }

    func setTokenDelivery(_ deliver: PushChannel.TokenDeliverer?, of identifier: String) {
        tokenDeliverers.withLock { $0[identifier] = deliver }
        let isSet = deliver != nil
        store.schedule { database in
            // Nothing is written, so that nothing can fail.
            _ = self.step(
                { session, context in session.tokenDeliverySet(identifier, isSet: isSet, at: context.now) }, database)
        }
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

    /// Begins to send on a connection.
    func attach(_ connection: WebSocketConnection) {
        self.connection.withLock { $0 = connection }
    }

    func detach() {
        connection.withLock { $0 = nil }
    }

    func endIterations() {
        for inbox in inboxes.withLock({ Array($0.values) }) { inbox.endRun() }
    }

    private func step(_ change: Change, _ database: Database) -> Result<Void, PushError> {
        var next = session.withLock { $0 }
        let actions: [SessionAction]
        do {
            let context = Context(now: .now, random: .random(in: 0..<1), database: database)
            actions = try change(&next, context)
            let changes = actions.compactMap { if case .write(let change) = $0 { change } else { nil } }
            try store.commit(changes, in: database)
        } catch {
            return .failure(error)
        }
        session.withLock { $0 = next }
        for action in actions { perform(action) }
        setAlarm(at: next.deadline)
        return .success(())
    }

    private func perform(_ action: SessionAction) {
        switch action {
        case .write: break
        case .send(let frame): connection.withLock { $0 }?.send(frame.text)
        case .closeSocket(let code): connection.withLock { $0 }?.close(code: code)
        case .deliver(let entry, let identifier): inbox(of: identifier).append(entry)
        case .tellAvailability(let present): availability.post(present)
        case .deliverToken(let address, let identifier): deliver(address, of: identifier)
        case .noteUndecryptable(let id, let identifier, let fault):
            logger.warning(
                "A message could not be decrypted",
                metadata: ["id": "\(id)", "channel": "\(identifier)", "reason": "\(fault.rawValue)"])
        case .wake: wakes.send()
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
        store.schedule { [weak self] database in
            guard let self else { return }
            let result = step({ session, context in session.timerFired(at: context.now) }, database)
            guard case .failure(let error) = result else { return }
            logger.error("A deadline could not be kept", metadata: ["error": "\(error)"])
            // The fault is the store's; looking again at once would not help.
            setAlarm(at: .now + .seconds(1))
        }
    }
}
