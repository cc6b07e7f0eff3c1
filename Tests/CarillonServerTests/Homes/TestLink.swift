import CarillonCore
import Synchronization

/// A link to a home of this process, on which a test loses questions and answers.
final class TestLink: Home {
    enum Loss: Sendable {
        /// The home answers, and the answer is lost.
        case answer
        /// The question does not reach the home.
        case question
    }

    private struct State {
        /// The losses of the next questions of a type.
        var losses: [ObjectIdentifier: [Loss]] = [:]
        var counts: [ObjectIdentifier: Int] = [:]
        var isCut = false
    }

    private let home: HomeRuntime
    private let state = Mutex(State())

    init(to home: HomeRuntime) { self.home = home }

    /// Loses the next question of a type, or its answer.
    func lose(_ loss: Loss, of type: any HomeQuestion.Type) {
        state.withLock { $0.losses[ObjectIdentifier(type), default: []].append(loss) }
    }

    /// Loses all questions from now on.
    func cut() { state.withLock { $0.isCut = true } }

    /// Returns how many questions of a type were asked.
    func count(of type: any HomeQuestion.Type) -> Int { state.withLock { $0.counts[ObjectIdentifier(type)] ?? 0 } }

    func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        switch loss(of: ObjectIdentifier(Question.self)) {
        case nil: return try await home.ask(question)
        case .answer?:
            _ = try await home.ask(question)
            throw HomeFault.outcomeUnknown
        case .question?: throw HomeFault.unreachable
        }
    }

    private func loss(of type: ObjectIdentifier) -> Loss? {
        state.withLock { state in
            state.counts[type, default: 0] += 1
            if state.isCut { return .question }
            guard let loss = state.losses[type]?.first else { return nil }
            state.losses[type]?.removeFirst()
            return loss
        }
    }

    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: InboxLoad, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session)
    }

    func read(_ load: InboxLoad, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        try await home.read(load, of: device)
    }

    func settle(_ answer: EnvelopeAnswer, of device: DeviceSerial) { home.settle(answer, of: device) }
    func leave(_ session: any LiveSession, of device: DeviceSerial) { home.leave(session, of: device) }
    func leave(_ session: any LiveSession, of name: DeviceName) { home.leave(session, of: name) }

    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse { try await home.handle(request) }
}
