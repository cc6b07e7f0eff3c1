import CarillonCore
import CarillonWire
import Synchronization

@testable import CarillonServer

/// A link to a home. It records what passes, and fails as the test says.
final class RecordingHome: Home {
    typealias Handler = @Sendable (HomeRequest) async throws(HomeFault) -> HomeResponse

    private struct State {
        var requests: [HomeRequest] = []
        var questionCount = 0
        var faults: [HomeFault] = []
        var handler: Handler?
        var answers = HomeAnswers()
    }

    private let home: (any LocalHome & Home)?
    private let state = Mutex(State())

    /// - Parameter home: Nil for a home that only runs requests.
    init(_ home: (any LocalHome & Home)? = nil) { self.home = home }

    var requests: [HomeRequest] { state.withLock { $0.requests } }
    /// The number of questions that passed.
    var questionCount: Int { state.withLock { $0.questionCount } }

    /// The next requests and questions end with these faults, and do not reach the home.
    func fail(with faults: HomeFault...) { state.withLock { $0.faults += faults } }

    /// What the home does with requests and questions.
    func take(_ handler: @escaping Handler, _ answers: HomeAnswers = HomeAnswers()) {
        state.withLock { ($0.handler, $0.answers) = (handler, answers) }
    }

    private func nextFault() -> HomeFault? {
        state.withLock { $0.faults.isEmpty ? nil : $0.faults.removeFirst() }
    }

    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse {
        state.withLock { $0.requests.append(request) }
        if let fault = nextFault() { throw fault }
        guard let handler = state.withLock({ $0.handler }) else { throw .unreachable }
        return try await handler(request)
    }

    func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        state.withLock { $0.questionCount += 1 }
        if let fault = nextFault() { throw fault }
        if let shard = question.shard, let home, !home.shards.contains(shard) { throw .moved(to: shard) }
        do {
            return .success(try await state.withLock { $0.answers }.answer(question))
        } catch let fault as HomeFault {
            throw fault
        } catch {
            return .failure(error)
        }
    }

    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: InboxLoad, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        guard let home else { throw .unreachable }
        return try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session)
    }

    func read(_ load: InboxLoad, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        guard let home else { throw .unreachable }
        return try await home.read(load, of: device)
    }

    func settle(_ answer: EnvelopeAnswer, of device: DeviceSerial) { home?.settle(answer, of: device) }
    func leave(_ session: any LiveSession, of device: DeviceSerial) { home?.leave(session, of: device) }
    func leave(_ session: any LiveSession, of name: DeviceName) { home?.leave(session, of: name) }
}
