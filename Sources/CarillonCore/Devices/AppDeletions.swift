package import CarillonWire

/// Deletes apps, and removes the rows of deleted apps and devices.
///
/// The rows that remain of deletions are those of the whole store. Their devices can have another home, which is informed of them.
package struct AppDeletions: Sendable {
    private let apps: AppRegistrar
    private let deletions: any DeletionStore
    private let directory: ChannelDirectory
    private let home: any LocalHome
    private let others: OtherHomes
    private let news: RemovalNews
    private let pending = PendingDeletions()
    private let time: TimeSource

    /// - Parameter deletions: The handle of the home, which removes devices.
    package init(
        apps: AppRegistrar, deletions: any DeletionStore, directory: ChannelDirectory, home: any LocalHome,
        others: OtherHomes, time: TimeSource
    ) {
        self.apps = apps
        self.deletions = deletions
        self.directory = directory
        self.home = home
        self.others = others
        news = RemovalNews(home: home, others: others, directory: directory)
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

    /// Informs the other homes of an app that was deleted.
    ///
    /// - Throws: ``StoreFault`` if another home did not answer. ``notifyAgain()`` informs it again.
    package func notify(_ app: AppSerial) async throws {
        pending.add(app)
        try await notifyAgain()
    }

    /// Informs the other homes of each deletion of this home of which they were not informed.
    ///
    /// - Throws: ``StoreFault`` if another home did not answer.
    package func notifyAgain() async throws {
        for app in pending.apps {
            try await others.inform(of: AppDeleted(app: app))
            pending.remove(app)
        }
        let removed = pending.removed
        guard removed != RemovedDevices() else { return }
        try await others.inform(of: DevicesRemoved(removed: removed))
        pending.remove(removed)
    }

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
    /// - Throws: ``StoreFault`` also if another home did not answer. ``notifyAgain()`` informs it again. If it does not answer for
    ///   long, no more rows are removed.
    package func proceed() async throws -> Bool {
        if pending.isFull { try await notifyAgain() }
        let step = try await deletions.continueDeletions(at: time.now(), limit: Self.rowsAtOnce)
        news.note(step.removed)
        if step.removed.devices.contains(where: { !home.has($0) }) { pending.add(step.removed) }
        try await notifyAgain()
        return step.isDone
    }
}
