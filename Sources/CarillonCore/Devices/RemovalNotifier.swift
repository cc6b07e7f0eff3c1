/// Informs homes of removed devices. A home removes their channels from its directory, and ends their sessions.
package struct RemovalNotifier: Sendable {
    private let home: any LocalHome
    private let others: OtherHomes
    private let directory: ChannelDirectory

    package init(home: any LocalHome, others: OtherHomes = .none, directory: ChannelDirectory) {
        self.home = home
        self.others = others
        self.directory = directory
    }

    /// Informs the homes of the devices.
    ///
    /// - Throws: ``StoreFault`` if another home did not answer. Its sessions of the devices can continue until they read an
    ///   inbox.
    package func notify(_ removed: RemovedDevices) async throws {
        note(removed)
        guard removed.devices.contains(where: { !home.has($0) }) else { return }
        try await others.inform(of: DevicesRemoved(removed: removed))
    }

    /// Informs only this home. Devices of other homes are ignored.
    package func note(_ removed: RemovedDevices) {
        directory.forget(removed.channels)
        home.end(removed.devices.filter { home.has($0) }, because: .deviceGone)
    }
}
