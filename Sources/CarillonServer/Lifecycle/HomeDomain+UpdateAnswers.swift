import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about audience updates.
    func addUpdateAnswers(to answers: inout HomeAnswers) {
        answers.on(UpdatePublished.self, at: self) { home, published in
            home.updateDelivery.notify(published.update, of: published.app)
        }
        answers.on(UpdateEnded.self, at: self) { home, ended in
            await home.updateDelivery.withdraw(ended.update, of: ended.app)
        }
        answers.on(WakeForUpdate.self, at: self) { home, wake in
            try await home.updateDelivery.wake(wake.sleeping, for: wake.waking)
        }
    }
}
