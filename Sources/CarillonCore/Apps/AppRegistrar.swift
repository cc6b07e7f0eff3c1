package import CarillonWire

/// Creates apps, lists them, and takes them away with all that hangs on them.
package struct AppRegistrar: Sendable {
    private let apps: any AppStore
    private let sessions: LiveSessions
    private let directory: ChannelDirectory
    private let time: TimeSource

    package init(apps: any AppStore, sessions: LiveSessions, directory: ChannelDirectory, time: TimeSource) {
        self.apps = apps
        self.sessions = sessions
        self.directory = directory
        self.time = time
    }

    package func create(_ id: AppID) async throws -> App {
        guard let app = try await apps.createApp(id, at: time.now()) else {
            throw Refusal(.appExists, "An app \"\(id)\" exists already.")
        }
        return app
    }

    package func list() async throws -> [App] { try await apps.apps() }

    /// The store's number of an app; nil when there is no such app.
    package func serial(of id: AppID) async throws -> AppSerial? { try await apps.app(id)?.serial }

    package func delete(_ id: AppID) async throws {
        guard let removed = try await apps.deleteApp(id, at: time.now()) else {
            throw Refusal(.appUnknown, "There is no app \"\(id)\".")
        }
        directory.forget(removed.channels)
        sessions.end(removed.devices, because: .deviceGone)
    }
}
