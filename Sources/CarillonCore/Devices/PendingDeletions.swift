import Synchronization

/// Deleted apps and removed devices of which the other homes are not informed yet. A start of the server clears them: no home has
/// data of them in memory then.
final class PendingDeletions: Sendable {
    private struct State {
        var apps: Set<AppSerial> = []
        var devices: Set<DeviceSerial> = []
        var channels: Set<ChannelSerial> = []
    }

    private static let most = 10_000

    private let state = Mutex(State())

    /// Whether no more devices should be added.
    var isFull: Bool { state.withLock { $0.devices.count + $0.channels.count >= Self.most } }

    var apps: [AppSerial] { state.withLock { Array($0.apps) } }

    var removed: RemovedDevices {
        state.withLock { RemovedDevices(devices: Array($0.devices), channels: Array($0.channels)) }
    }

    func add(_ app: AppSerial) { state.withLock { _ = $0.apps.insert(app) } }

    func remove(_ app: AppSerial) { state.withLock { _ = $0.apps.remove(app) } }

    func add(_ removed: RemovedDevices) {
        state.withLock { state in
            state.devices.formUnion(removed.devices)
            state.channels.formUnion(removed.channels)
        }
    }

    func remove(_ removed: RemovedDevices) {
        state.withLock { state in
            state.devices.subtract(removed.devices)
            state.channels.subtract(removed.channels)
        }
    }
}
