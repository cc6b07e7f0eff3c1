import CarillonCore
import CarillonWire
import Synchronization

/// A link to a home, on which a test sees and loses calls. The session of a device that has moved arrives at the new home.
final class TestLink: Home {
    typealias Handler = @Sendable (HomeRequest) async throws(HomeFault) -> HomeResponse

    enum Loss: Sendable {
        /// The home answers, and the answer is lost.
        case answer
        /// The question does not reach the home.
        case question
    }

    private struct State {
        var requests: [HomeRequest] = []
        /// The number of questions of each type.
        var questions: [ObjectIdentifier: Int] = [:]
        var faults: [HomeFault] = []
        /// The losses of the next questions of a type.
        var losses: [ObjectIdentifier: [Loss]] = [:]
        var isCut = false
        var handler: Handler?
        /// The sessions as the home has them, by those of the connections.
        var sessions: [ObjectIdentifier: TestLinkSession] = [:]
        var beforeArrival: (@Sendable () async -> Void)?
        var afterLostArrival: (@Sendable () async -> Void)?
        weak var homes: Homes?
    }

    private let home: any Home
    private let state = Mutex(State())

    init(to home: any Home) { self.home = home }

    // MARK: Passed calls

    /// The requests, also those that did not reach the home.
    var requests: [HomeRequest] { state.withLock { $0.requests } }

    /// The number of all questions, also of those that did not reach the home.
    var questionCount: Int { state.withLock { $0.questions.values.reduce(0, +) } }

    /// Returns the number of questions of a type, also of those that did not reach the home.
    func count(of type: any HomeQuestion.Type) -> Int { state.withLock { $0.questions[ObjectIdentifier(type)] ?? 0 } }

    // MARK: Lost calls

    /// Loses all questions until ``mend()``.
    func cut() { state.withLock { $0.isCut = true } }
    func mend() { state.withLock { $0.isCut = false } }

    /// The next requests and questions end with these faults, and do not reach the home.
    func fail(with faults: HomeFault...) { state.withLock { $0.faults += faults } }

    /// Loses the next question of a type, or its answer.
    func lose(_ loss: Loss, of type: any HomeQuestion.Type) {
        state.withLock { $0.losses[ObjectIdentifier(type), default: []].append(loss) }
    }

    /// Loses the home's answer to the next arrival. Runs the work before the caller knows that.
    func loseArrival(after work: @escaping @Sendable () async -> Void) { state.withLock { $0.afterLostArrival = work } }

    /// Runs the work after each move of a device with a session, before the session arrives at the new home.
    func beforeArrival(_ work: @escaping @Sendable () async -> Void) { state.withLock { $0.beforeArrival = work } }

    /// Handles requests in place of the home from now on.
    func take(_ handler: @escaping Handler) { state.withLock { $0.handler = handler } }

    // MARK: Requests and questions

    private func nextFault() -> HomeFault? {
        state.withLock { $0.faults.isEmpty ? nil : $0.faults.removeFirst() }
    }

    private func nextLoss(of type: ObjectIdentifier) -> Loss? {
        state.withLock { state in
            if state.isCut { return .question }
            guard let loss = state.losses[type]?.first else { return nil }
            state.losses[type]?.removeFirst()
            return loss
        }
    }

    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse {
        state.withLock { $0.requests.append(request) }
        if let fault = nextFault() { throw fault }
        guard let handler = state.withLock({ $0.handler }) else { return try await home.handle(request) }
        return try await handler(request)
    }

    func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        let type = ObjectIdentifier(Question.self)
        state.withLock { $0.questions[type, default: 0] += 1 }
        if let fault = nextFault() { throw fault }
        let loss = nextLoss(of: type)
        if loss == .question { throw .unreachable }
        let answer = try await home.ask(question)
        if loss == .answer { throw .outcomeUnknown }
        return answer
    }

    // MARK: Sessions

    /// Sessions of devices that have moved find the new homes here. The link does not keep the homes.
    func connect(_ homes: Homes) { state.withLock { $0.homes = homes } }

    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        let linked = TestLinkSession(session) { [self] in
            _ = forget(session)
            return { [self] in
                let (homes, work) = state.withLock { ($0.homes, $0.beforeArrival) }
                await work?()
                guard let homes else { return .failed(StoreFault(.unavailable, "the link knows no homes")) }
                return await homes.arriveAgain(name, proof, speaking: version, openedAt: openedAt, as: session)
            }
        }
        state.withLock { $0.sessions[ObjectIdentifier(session)] = linked }
        var hasArrived = false
        defer { if !hasArrived { _ = forget(session) } }
        let arrived = try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: linked)
        if let work = takeLostArrival() {
            await work()
            throw .outcomeUnknown
        }
        hasArrived = arrived.device != nil
        return arrived
    }

    private func takeLostArrival() -> (@Sendable () async -> Void)? {
        state.withLock { state in
            defer { state.afterLostArrival = nil }
            return state.afterLostArrival
        }
    }

    private func forget(_ session: any LiveSession) -> TestLinkSession? {
        state.withLock { $0.sessions.removeValue(forKey: ObjectIdentifier(session)) }
    }

    func read(_ load: PageRequest, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        try await home.read(load, of: device)
    }

    func finish(_ answer: EnvelopeAnswer, of device: DeviceSerial) { home.finish(answer, of: device) }

    func leave(_ session: any LiveSession, of device: DeviceSerial) {
        if let linked = forget(session) { home.leave(linked, of: device) }
    }

    func leave(_ session: any LiveSession, of name: DeviceName) {
        if let linked = forget(session) { home.leave(linked, of: name) }
    }
}
