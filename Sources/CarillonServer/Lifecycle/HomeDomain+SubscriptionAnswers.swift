import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about firings and item subscriptions.
    func addSubscriptionAnswers(to answers: inout HomeAnswers) {
        answers.on(FiringDeliveries.self, at: self) { home, question in
            await home.firings.deliver(question.deliveries)
        }
        answers.on(FollowedSubscriptions.self, at: self) { home, question in
            try await home.subscriptions.follow(question)
        }
        answers.on(ConditionRefusal.self, at: self) { home, question in
            try await home.subscriptions.answer(question)
        }
        answers.on(HandOversWait.self, at: self) { home, _ in try await home.itemEngine.settle() }
        answers.on(ItemRulesBeingSet.self, at: self) { home, question in
            home.subscriptions.isSettingRules(of: question.app)
        }
    }
}
