package import CarillonWire

/// Creates apps, lists them, and takes them away with all that hangs on them.
package struct AppRegistrar: Sendable {
    private let apps: any AppStore
    private let deletions: any DeletionStore
    private let homes: Homes
    private let directory: ChannelDirectory
    private let time: TimeSource

    /// - Parameter deletions: The handle of the home, which removes devices.
    package init(
        apps: any AppStore, deletions: any DeletionStore, homes: Homes, directory: ChannelDirectory, time: TimeSource
    ) {
        self.apps = apps
        self.deletions = deletions
        self.homes = homes
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

    /// Removes an app. Nobody can use the app when this returns. Its rows remain; see ``beginDeletions()``.
    ///
    /// - Throws: ``Refusal`` if there is no such app, or the fault of the store. After a throw, nothing of the app is removed.
    package func delete(_ id: AppID) async throws {
        guard try await apps.deleteApp(id, at: time.now()) else {
            throw Refusal(.appUnknown, "There is no app \"\(id)\".")
        }
        directory.forgetAll()
    }

    /// Removes the first rows of deleted apps and devices, so that small deletions end soon. The sweep removes the others.
    package func beginDeletions() async throws {
        for _ in 0..<Self.stepsAtOnce where try await continueDeletions() { return }
    }

    private static let stepsAtOnce = 100
    private static let rowsAtOnce = 500

    /// Does the next part of what deletions left to be done. Answers whether nothing is left.
    package func continueDeletions() async throws -> Bool {
        let step = try await deletions.continueDeletions(at: time.now(), limit: Self.rowsAtOnce)
        directory.forget(step.removed.channels)
        homes.end(step.removed.devices, because: .deviceGone)
        return step.isDone
    }
}
