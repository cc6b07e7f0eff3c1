@testable import CarillonCore

/// A home that answers questions, or does not, and accepts no other call.
final class AskedHome: Home {
    private let answers: HomeAnswers
    private let fault: HomeFault?

    /// - Parameter fault: The fault of each question.
    init(_ fault: HomeFault) {
        answers = HomeAnswers()
        self.fault = fault
    }

    /// A home that answers the questions of a type.
    init<Question: HomeQuestion>(
        _ type: Question.Type, _ answer: @escaping @Sendable (Question) async throws -> Question.Answer
    ) {
        var answers = HomeAnswers()
        answers.on(type, answer)
        self.answers = answers
        fault = nil
    }

    func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        if let fault { throw fault }
        do {
            return .success(try await answers.answer(question))
        } catch {
            return .failure(error)
        }
    }

    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived { throw .unreachable }

    func read(_ load: PageRequest, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        throw .unreachable
    }

    func finish(_ answer: EnvelopeAnswer, of device: DeviceSerial) {}
    func leave(_ session: any LiveSession, of device: DeviceSerial) {}
    func leave(_ session: any LiveSession, of name: DeviceName) {}
    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse { throw .unreachable }
}
