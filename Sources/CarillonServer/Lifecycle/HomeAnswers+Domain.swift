import CarillonCore

extension HomeAnswers {
    /// Answers questions of a type as long as the home exists. The answers refer to the home weakly.
    mutating func on<Question: HomeQuestion>(
        _ type: Question.Type, at home: HomeDomain,
        _ answer: @escaping @Sendable (HomeDomain, Question) async throws -> Question.Answer
    ) {
        on(type) { [weak home] question in
            guard let home else { throw StoreFault(.unavailable, "the home is closed") }
            return try await answer(home, question)
        }
    }
}
