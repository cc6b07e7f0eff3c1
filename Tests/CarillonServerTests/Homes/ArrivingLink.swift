import CarillonCore
import CarillonWire
import Synchronization

/// A link of connections to a home. The session of a device that has moved arrives at the new home.
final class ArrivingLink: Home {
    private struct State {
        var homes: Homes?
        var connections: [ObjectIdentifier: Connection] = [:]
        var beforeArrival: (@Sendable () async -> Void)?
        var afterLostArrival: (@Sendable () async -> Void)?
    }

    private let home: any Home
    private let state = Mutex(State())

    init(to home: any Home) { self.home = home }

    /// Sessions find the new homes of their devices here.
    func connect(_ homes: Homes) { state.withLock { $0.homes = homes } }

    /// Runs the work after each move of a device with a session, before the session arrives at the new home.
    func beforeArrival(_ work: (@Sendable () async -> Void)?) { state.withLock { $0.beforeArrival = work } }

    /// Loses the home's answer to the next arrival. Runs the work before the caller knows that.
    func loseArrival(after work: @escaping @Sendable () async -> Void) { state.withLock { $0.afterLostArrival = work } }

    // MARK: Sessions

    /// A session as the home has it, with what it arrives with.
    private final class Connection: LiveSession {
        let session: any LiveSession
        let name: DeviceName
        let proof: DeviceProof
        let version: Int
        let openedAt: OpeningTime
        private let link: ArrivingLink
        private let isEnded = Mutex(false)

        init(
            _ session: any LiveSession, of name: DeviceName, _ proof: DeviceProof, _ version: Int, openedAt: OpeningTime,
            on link: ArrivingLink
        ) {
            self.session = session
            self.name = name
            self.proof = proof
            self.version = version
            self.openedAt = openedAt
            self.link = link
        }

        var executor: (any TaskExecutor)? { session.executor }

        func offer(_ envelope: Envelope) { session.offer(envelope) }
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
            session.offerVolatile(envelope, answer: answer)
        }
        func storedMore() { session.storedMore() }
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
            session.withdrew(withdrawal, done: done)
        }
        func settled(_ ids: [MessageID]) { session.settled(ids) }
        func providersChanged() { session.providersChanged() }
        func end(because reason: SessionEnd) {
            isEnded.withLock { $0 = true }
            session.end(because: reason)
        }
        func moving(done: @escaping @Sendable () -> Void) { session.moving(done: done) }

        func moved(_ end: MoveEnd) {
            guard case .gone = end else { return session.moved(end) }
            _ = link.forget(session)
            guard !isEnded.withLock({ $0 }) else { return session.moved(.gone) }
            session.moved(.arrives { [self] in await link.arriveAgain(self) })
        }
    }

    private func forget(_ session: any LiveSession) -> Connection? {
        state.withLock { $0.connections.removeValue(forKey: ObjectIdentifier(session)) }
    }

    private func arriveAgain(_ connection: Connection) async -> ArrivedAgain {
        let (homes, work) = state.withLock { ($0.homes, $0.beforeArrival) }
        await work?()
        guard let homes else { return .failed(StoreFault(.unavailable, "the link knows no homes")) }
        return await homes.arriveAgain(
            connection.name, connection.proof, speaking: connection.version, openedAt: connection.openedAt,
            as: connection.session)
    }

    // MARK: Calls

    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: InboxLoad, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        let connection = connect(session, of: name, proof, version, openedAt)
        do throws(HomeFault) {
            let arrived = note(
                try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: connection),
                of: session)
            guard let work = takeLoss() else { return arrived }
            await work()
            throw HomeFault.outcomeUnknown
        } catch {
            _ = forget(session)
            throw error
        }
    }

    private func connect(
        _ session: any LiveSession, of name: DeviceName, _ proof: DeviceProof, _ version: Int, _ openedAt: OpeningTime
    ) -> Connection {
        let connection = Connection(session, of: name, proof, version, openedAt: openedAt, on: self)
        state.withLock { $0.connections[ObjectIdentifier(session)] = connection }
        return connection
    }

    private func takeLoss() -> (@Sendable () async -> Void)? {
        state.withLock { state in
            defer { state.afterLostArrival = nil }
            return state.afterLostArrival
        }
    }

    private func note(_ arrived: Arrived, of session: any LiveSession) -> Arrived {
        if arrived.device == nil { _ = forget(session) }
        return arrived
    }

    func read(_ load: InboxLoad, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        try await home.read(load, of: device)
    }

    func settle(_ answer: EnvelopeAnswer, of device: DeviceSerial) { home.settle(answer, of: device) }

    func leave(_ session: any LiveSession, of device: DeviceSerial) {
        if let connection = forget(session) { home.leave(connection, of: device) }
    }

    func leave(_ session: any LiveSession, of name: DeviceName) {
        if let connection = forget(session) { home.leave(connection, of: name) }
    }

    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse { try await home.handle(request) }

    func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        try await home.ask(question)
    }
}
