package import CarillonWire

/// Deletes apps, and removes the rows of deleted apps and devices.
///
/// The rows of deletions cover the whole store. If such a row belongs to a device of another home, that home is informed.
package struct AppDeletions: Sendable {
    private let apps: AppRegistrar
    private let deletions: any DeletionStore
    private let directory: ChannelDirectory
    private let home: any LocalHome
    private let others: OtherHomes
    private let notifier: RemovalNotifier
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
        notifier = RemovalNotifier(home: home, others: others, directory: directory)
        self.time = time
    }

    /// Removes an app. When this returns, the app cannot be used at this home. Its rows remain; see ``begin()``.
    ///
    /// - Throws: ``Refusal`` if there is no such app, or the fault of the store. After a throw, nothing of the app is removed.
    package func delete(_ id: AppID) async throws {
        try await apps.delete(id)
        forgetChannels()
    }

    /// Removes the channels of all apps from the directory, because channels of a deleted app can be among them.
    package func forgetChannels() { directory.forgetAll() }

    /// Informs the other homes of an app that was deleted.
    ///
    /// - Throws: ``StoreFault`` if another home did not answer. ``notifyAgain()`` informs it again.
    package func notify(_ app: AppSerial) async throws {
        pending.add(app)
        try await notifyAgain()
    }

    /// Informs the other homes of each deletion of this home that they do not have yet.
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

    /// Notes that another home removed devices of this home.
    package func note(_ removed: RemovedDevices) { notifier.note(removed) }

    /// Removes the first rows of deleted apps and devices, so that small deletions finish soon. The sweep removes the other rows.
    package func begin() async throws {
        for _ in 0..<Self.stepsAtOnce where try await proceed() { return }
    }

    private static let stepsAtOnce = 100
    private static let rowsAtOnce = 500

    /// Removes the next rows of deleted apps and devices.
    ///
    /// - Returns: Whether no such row is left.
    /// - Throws: ``StoreFault`` also if another home did not answer. ``notifyAgain()`` informs it again. If it does not answer
    ///   for long, no more rows are removed.
    package func proceed() async throws -> Bool {
        if pending.isFull { try await notifyAgain() }
        let step = try await deletions.continueDeletions(at: time.now(), limit: Self.rowsAtOnce)
        notifier.note(step.removed)
        if step.removed.devices.contains(where: { !home.has($0) }) { pending.add(step.removed) }
        try await notifyAgain()
        return step.isDone
    }
}
