import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about updates for an audience.
    func addUpdateAnswers(to answers: inout HomeAnswers) {
        answers.on(UpdatePublished.self) { [weak updateDelivery] published in
            guard let updateDelivery else { throw HomeDomain.ended }
            updateDelivery.tell(published.update, of: published.app)
        }
        answers.on(UpdateEnded.self) { [weak updateDelivery] ended in
            guard let updateDelivery else { throw HomeDomain.ended }
            await updateDelivery.withdraw(ended.update, of: ended.app)
        }
        answers.on(WakeForUpdate.self) { [weak updateDelivery] wake in
            guard let updateDelivery else { throw HomeDomain.ended }
            try await updateDelivery.wake(wake.sleeping, for: wake.waking)
        }
    }

    /// The answer of a home that is gone.
    static var ended: StoreFault { StoreFault(.unavailable, "the home has ended") }
}
