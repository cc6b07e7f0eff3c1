import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about subscriptions.
    func addSubscriptionAnswers(to answers: inout HomeAnswers) {}
}
