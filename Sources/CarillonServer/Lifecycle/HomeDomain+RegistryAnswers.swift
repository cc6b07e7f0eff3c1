import CarillonCore

/// An app was deleted. Each home forgets the app.
struct AppDeleted: HomeQuestion {
    typealias Answer = Void
    var app: AppSerial
    var shard: Shard? { nil }
}

extension HomeDomain {
    /// Adds the answers to questions about registrations, apps and keys.
    func addRegistryAnswers(to answers: inout HomeAnswers) {
        answers.on(DevicesRemoved.self) { [weak self] question in
            guard let self else { throw HomeDomain.ended }
            deletions.note(question.removed)
        }
        answers.on(KeyDevicesEnded.self) { [weak self] question in
            guard let self else { throw HomeDomain.ended }
            try await devices.deleteDevices(registeredWith: question.key, of: question.app)
        }
        answers.on(StatusChanged.self) { [weak self] _ in
            guard let self else { throw HomeDomain.ended }
            try await statusNews.tell()
        }
        answers.on(AppDeleted.self) { [weak self] question in
            guard let self else { throw HomeDomain.ended }
            deletions.forgetChannels()
            await forget(question.app)
        }
    }
}
