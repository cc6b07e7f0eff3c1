import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about items.
    func addItemAnswers(to answers: inout HomeAnswers) {}
}
