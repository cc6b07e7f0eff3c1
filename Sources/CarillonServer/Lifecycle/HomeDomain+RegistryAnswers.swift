import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about registrations, apps and keys.
    func addRegistryAnswers(to answers: inout HomeAnswers) {}
}
