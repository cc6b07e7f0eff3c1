import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about updates for an audience.
    func addUpdateAnswers(to answers: inout HomeAnswers) {}
}
