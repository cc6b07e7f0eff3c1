import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about requests between apps.
    func addServiceAnswers(to answers: inout HomeAnswers) {}
}
