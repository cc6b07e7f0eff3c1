/// A request of a feature of one home to another home.
///
/// A request and its answer are values, so that a link between processes can write them as bytes. Repeating a request must be
/// safe, because the first answer can be lost.
package protocol HomeQuestion: Sendable {
    associatedtype Answer: Sendable
    /// The shard whose home answers; nil if each home answers for its own shards.
    var shard: Shard? { get }
}

/// The answers of a home, by type of request.
package struct HomeAnswers: Sendable {
    private var answers: [ObjectIdentifier: any Sendable] = [:]

    package init() {}

    private typealias Answering<Question: HomeQuestion> = @Sendable (Question) async throws -> Question.Answer

    /// Registers the function that answers requests of a type. A type has one such function.
    package mutating func on<Question: HomeQuestion>(
        _ type: Question.Type, _ answer: @escaping @Sendable (Question) async throws -> Question.Answer
    ) {
        let kind = ObjectIdentifier(type)
        precondition(answers[kind] == nil, "\(type) has an answer already.")
        answers[kind] = answer as Answering<Question>
    }

    /// - Throws: The error of the feature: ``Refusal``, ``StoreFault``, or ``HomeFault/moved(to:)`` before anything was changed.
    ///   Also ``StoreFault`` if no feature answers requests of this type.
    package func answer<Question: HomeQuestion>(_ question: Question) async throws -> Question.Answer {
        guard let answer = answers[ObjectIdentifier(Question.self)] as? Answering<Question> else {
            throw StoreFault(.unavailable, "the home has no answer for \(Question.self)")
        }
        return try await answer(question)
    }
}
