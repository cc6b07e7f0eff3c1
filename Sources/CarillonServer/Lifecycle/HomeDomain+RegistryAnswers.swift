import CarillonCore

extension HomeDomain {
    /// Adds the answers to questions about registrations, apps and keys.
    func addRegistryAnswers(to answers: inout HomeAnswers) {
        answers.on(DevicesRemoved.self, at: self) { home, question in
            home.deletions.note(question.removed)
        }
        answers.on(KeyDevicesEnded.self, at: self) { home, question in
            try await home.devices.deleteDevices(registeredWith: question.key, of: question.app)
        }
        answers.on(StatusChanged.self, at: self) { home, _ in
            _ = try await home.statusNotifier.notify()
        }
        answers.on(AppDeleted.self, at: self) { home, question in
            home.deletions.forgetChannels()
            await home.forget(question.app)
        }
    }
}
