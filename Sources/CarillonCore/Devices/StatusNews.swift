/// A status that its device was not told of.
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

/// Tells devices that they were suspended or resumed: by an envelope of the device's own, that takes the place of one that waits.
///
/// The store knows who was not told, so that nobody is forgotten; what is told and that it was is written in one.
package struct StatusNews: Sendable {
    private let devices: any DeviceStore
    private let home: any LocalHome
    private let others: OtherHomes

    package init(devices: any DeviceStore, home: any LocalHome, others: OtherHomes = .none) {
        self.devices = devices
        self.home = home
        self.others = others
    }

    /// Tells all who were not told yet, some at a time. Answers how many it was. A device that moves delays no other one.
    @discardableResult
    package func notify() async throws -> Int {
        let pending = try await devices.pendingStatuses(in: home.shards, limit: Self.atOnce)
        var moves: StoreFault?
        for news in pending {
            let rules = AppendRules(topic: Self.topic, effects: [.statusNotified(news.device, at: news.at)])
            let delivered = await home.deliver(to: news.device, .kept, rules: rules) { id in
                Envelope(
                    id: id, device: news.device, app: news.app, origin: .device(news.device),
                    kind: .deviceStatus(news.status), acceptedAt: news.at, expiresAt: .never)
            }
            // What was refused is told by somebody else, or is not so any more.
            guard case .failed(let fault) = delivered else { continue }
            guard fault.isOfHome else { throw fault }
            moves = moves ?? fault
        }
        if let moves { throw moves }
        return pending.count
    }

    /// Does the same after a change that is stored. A fault is ignored: it must not fail the change. The sweep tries again, and reports the
    /// fault if it persists.
    ///
    /// - Parameter isElsewhere: Whether the device can be a device of another home, which gets a hint then.
    package func notifyIfPossible(alsoElsewhere isElsewhere: Bool = false) async {
        if isElsewhere { others.hint(StatusChanged()) }
        do { try await notify() } catch {}
    }

    package static let atOnce = 100
    /// No sender can write this topic.
    private static let topic = "device:status"
}
