package import CarillonWire

/// Deletes apps, and removes the rows of deleted apps and devices.
///
/// The rows that remain of deletions are those of the whole store. Their devices can have another home, which is informed of them.
package struct AppDeletions: Sendable {
    private let apps: AppRegistrar
    private let deletions: any DeletionStore
    private let directory: ChannelDirectory
    private let news: RemovalNews
    private let time: TimeSource

    /// - Parameter deletions: The handle of the home, which removes devices.
    package init(
        apps: AppRegistrar, deletions: any DeletionStore, directory: ChannelDirectory, news: RemovalNews, time: TimeSource
    ) {
        self.apps = apps
        self.deletions = deletions
        self.directory = directory
        self.news = news
        self.time = time
    }

    /// Removes an app. Nobody can use the app at this home when this returns. Its rows remain; see ``begin()``.
    ///
    /// - Throws: ``Refusal`` if there is no such app, or the fault of the store. After a throw, nothing of the app is removed.
    package func delete(_ id: AppID) async throws {
        try await apps.delete(id)
        forgetChannels()
    }

    /// Forgets the channels of an app that was deleted, with all others.
    package func forgetChannels() { directory.forgetAll() }

    /// Another home removed devices of this home.
    package func note(_ removed: RemovedDevices) { news.note(removed) }

    /// Removes the first rows of deleted apps and devices, so that small deletions end soon. The sweep removes the others.
    package func begin() async throws {
        for _ in 0..<Self.stepsAtOnce where try await proceed() { return }
    }

    private static let stepsAtOnce = 100
    private static let rowsAtOnce = 500

    /// Removes the next rows of deleted apps and devices.
    ///
    /// - Returns: Whether no such row is left.
    package func proceed() async throws -> Bool {
        let step = try await deletions.continueDeletions(at: time.now(), limit: Self.rowsAtOnce)
        try await news.tell(step.removed)
        return step.isDone
    }
}
