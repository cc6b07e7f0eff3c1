/// A question that a feature of a home asks another home.
///
/// A question and its answer are values, so that a link between processes can write them as bytes. It is safe to ask a question twice: the
/// first answer can be lost.
package protocol HomeQuestion: Sendable {
    associatedtype Answer: Sendable
    /// The shard whose home answers; nil if each home answers for its own shards.
    var shard: Shard? { get }
}

/// The answers of a home to each kind of question.
package struct HomeAnswers: Sendable {
    private var answers: [ObjectIdentifier: any Sendable] = [:]

    package init() {}

    private typealias Answering<Question: HomeQuestion> = @Sendable (Question) async throws -> Question.Answer

    /// Answers questions of a type from now on. A type has one answer.
    package mutating func on<Question: HomeQuestion>(
        _ type: Question.Type, _ answer: @escaping @Sendable (Question) async throws -> Question.Answer
    ) {
        let kind = ObjectIdentifier(type)
        precondition(answers[kind] == nil, "\(type) already has an answer.")
        answers[kind] = answer as Answering<Question>
    }

    /// - Throws: What the feature throws: ``Refusal``, ``StoreFault``, or ``HomeFault/moved(to:)`` before anything was changed. ``StoreFault``
    ///   also if no feature answers such questions.
    package func answer<Question: HomeQuestion>(_ question: Question) async throws -> Question.Answer {
        guard let answer = answers[ObjectIdentifier(Question.self)] as? Answering<Question> else {
            throw StoreFault(.unavailable, "the home has no handler for \(Question.self)")
        }
        return try await answer(question)
    }
}
