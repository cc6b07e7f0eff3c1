package import CarillonWire

/// Creates apps and lists them. ``AppDeletions`` deletes them.
package struct AppRegistrar: Sendable {
    private let apps: any AppStore
    private let time: TimeSource

    package init(apps: any AppStore, time: TimeSource) {
        self.apps = apps
        self.time = time
    }

    package func create(_ id: AppID) async throws -> App {
        guard let app = try await apps.createApp(id, at: time.now()) else {
            throw Refusal(.appExists, "The app \"\(id)\" exists already.")
        }
        return app
    }

    package func list() async throws -> [App] { try await apps.apps() }

    /// Returns the store's number of an app, or nil if there is no such app.
    package func serial(of id: AppID) async throws -> AppSerial? { try await apps.app(id)?.serial }

    /// Deletes the row of an app. ``AppDeletions/delete(_:)`` also removes the app from the home.
    func delete(_ id: AppID) async throws {
        guard try await apps.deleteApp(id, at: time.now()) else {
            throw Refusal.noApp(id)
        }
    }
}

extension AppStore {
    /// Returns the store's number of an app.
    ///
    /// - Throws: ``Refusal`` if there is no such app.
    package func existing(_ id: AppID) async throws -> AppSerial {
        guard let app = try await app(id) else { throw Refusal.noApp(id) }
        return app.serial
    }
}

extension Refusal {
    package static func noApp(_ id: AppID) -> Refusal { Refusal(.appUnknown, "There is no app \"\(id)\".") }
}
