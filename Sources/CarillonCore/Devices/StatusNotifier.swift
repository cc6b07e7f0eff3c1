/// A status of which the device is not notified yet.
package struct PendingStatus: Equatable, Sendable {
    package var device: DeviceSerial
    package var app: AppSerial
    package var status: DeviceStatus
    package var at: Timestamp

    package init(device: DeviceSerial, app: AppSerial, status: DeviceStatus, at: Timestamp) {
        self.device = device
        self.app = app
        self.status = status
        self.at = at
    }
}

/// Notifies devices that they were suspended or resumed. The notification is an envelope of the device's own origin. A new one
/// replaces one that is waiting.
///
/// The store keeps the pending devices, so that none is missed. The envelope and its mark as delivered are written together.
package struct StatusNotifier: Sendable {
    private let devices: any DeviceStore
    private let home: any LocalHome
    private let others: OtherHomes

    package init(devices: any DeviceStore, home: any LocalHome, others: OtherHomes = .none) {
        self.devices = devices
        self.home = home
        self.others = others
    }

    /// Notifies pending devices, up to ``atOnce``. Returns their number. A device that moves does not delay other devices.
    @discardableResult
    package func notify() async throws -> Int {
        let pending = try await devices.pendingStatuses(in: home.shards, limit: Self.atOnce)
        var moves: StoreFault?
        for pendingStatus in pending {
            let rules = AppendRules(
                topic: Self.topic, effects: [.statusNotified(pendingStatus.device, at: pendingStatus.at)])
            let delivered = await home.deliver(to: pendingStatus.device, .kept, rules: rules) { id in
                Envelope(
                    id: id, device: pendingStatus.device, app: pendingStatus.app, origin: .device(pendingStatus.device),
                    kind: .deviceStatus(pendingStatus.status), acceptedAt: pendingStatus.at, expiresAt: .never)
            }
            // If it was refused, another call notified the device, or the status changed.
            guard case .failed(let fault) = delivered else { continue }
            guard fault.isOfHome else { throw fault }
            moves = moves ?? fault
        }
        if let moves { throw moves }
        return pending.count
    }

    /// Notifies pending devices after a change that is stored. A fault is ignored, because it must not fail the change. The sweep
    /// tries again, and reports the fault if it persists.
    ///
    /// - Parameter isElsewhere: Whether the device can belong to another home. The other homes then get a hint.
    package func notifyIfPossible(alsoElsewhere isElsewhere: Bool = false) async {
        if isElsewhere { others.hint(StatusChanged()) }
        do { try await notify() } catch {}
    }

    package static let atOnce = 100
    /// A collapse key that no sender can write.
    private static let topic = "device:status"
}
