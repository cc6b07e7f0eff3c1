import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about services.
    func addServiceAnswers(to answers: inout HomeAnswers) {
        answers.on(ServiceDelivery.self, at: self) { home, delivery in await home.services.append(delivery) }
        answers.on(RequestWithdrawal.self, at: self) { home, withdrawal in
            try await home.services.perform(withdrawal)
        }
        answers.on(FrontRequest.self, at: self) { home, request in await home.services.deliverFront(request) }
        answers.on(ConnectedDevices.self, at: self) { home, question in home.services.connected(question) }
        answers.on(ProvidersChanged.self, at: self) { home, change in home.services.inform(change) }
        answers.on(DueRequestsWait.self, at: self) { home, _ in _ = try await home.services.endDue() }
    }
}
