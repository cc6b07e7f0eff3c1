import CarillonCore

/// An app was deleted. Each home forgets the app.
struct AppDeleted: HomeQuestion {
    typealias Answer = Void
    var app: AppSerial
    var shard: Shard? { nil }
}

/// Parked pushes of an app are to be sent again. Each home answers with their number in its shards.
struct RequeueParkedPushes: HomeQuestion {
    typealias Answer = Int
    var app: AppSerial
    var shard: Shard? { nil }
}

extension HomeDomain {
    /// Adds the answers to questions about registrations, apps, keys and pushes.
    func addRegistryAnswers(to answers: inout HomeAnswers) {
        answers.on(DevicesRemoved.self, at: self) { home, question in
            home.deletions.note(question.removed)
        }
        answers.on(KeyDevicesEnded.self, at: self) { home, question in
            try await home.devices.deleteDevices(registeredWith: question.key, of: question.app)
        }
        answers.on(StatusChanged.self, at: self) { home, _ in
            _ = try await home.statusNews.tell()
        }
        answers.on(AppDeleted.self, at: self) { home, question in
            home.deletions.forgetChannels()
            await home.forget(question.app)
        }
        answers.on(RequeueParkedPushes.self, at: self) { home, question in
            try await home.requeueOwnPushes(of: question.app)
        }
    }

    /// Sends the parked pushes of an app again.
    ///
    /// - Returns: The number of the pushes at all homes.
    func requeueParkedPushes(of app: AppSerial) async throws -> Int {
        let own = try await requeueOwnPushes(of: app)
        return try await others.askEach(RequeueParkedPushes(app: app)).reduce(own, +)
    }

    private func requeueOwnPushes(of app: AppSerial) async throws -> Int {
        try await pushes.requeueParkedPushes(of: app, in: home.shards, at: time.now())
    }
}
