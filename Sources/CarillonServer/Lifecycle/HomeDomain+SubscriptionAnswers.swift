import CarillonCore

extension HomeDomain {
    /// Answers what other homes ask about firings and subscriptions.
    func addSubscriptionAnswers(to answers: inout HomeAnswers) {
        answers.on(FiringDeliveries.self, at: self) { home, question in
            await home.firings.deliver(question.deliveries)
        }
    }
}
