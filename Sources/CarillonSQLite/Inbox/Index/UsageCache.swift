import CarillonCore
import Synchronization

/// Caches the usage of inboxes. The usage of a device is read from the store when it is first needed, and updated with every
/// write. A transaction that fails clears the cache. The least recently used devices are removed.
///
/// Only the store's writing connection uses the cache, so that it is consistent with the transactions.
final class UsageCache: Sendable {
    private struct State {
        var usage: LRUCache<DeviceSerial, InboxUsage>
        /// No waiting envelope of the device is overdue before this time.
        var quietUntil: LRUCache<DeviceSerial, Timestamp>
    }

    private let state: Mutex<State>

    init(capacity: Int = 50_000) {
        state = Mutex(State(usage: LRUCache(capacity: capacity), quietUntil: LRUCache(capacity: capacity)))
    }

    func usage(of device: DeviceSerial) -> InboxUsage { state.withLock { $0.usage[device] } ?? InboxUsage() }

    func set(_ usage: InboxUsage, of device: DeviceSerial) { state.withLock { $0.usage[device] = usage } }

    func apply(_ changes: [DeviceSerial: InboxUsage.Change]) {
        state.withLock { state in
            for (device, change) in changes {
                guard var usage = state.usage[device] else { continue }
                usage.apply(change)
                state.usage[device] = usage
            }
        }
    }

    func isQuiet(_ device: DeviceSerial, at now: Timestamp) -> Bool {
        state.withLock { $0.quietUntil[device].map { now < $0 } ?? false }
    }

    func setQuiet(_ device: DeviceSerial, until moment: Timestamp) {
        state.withLock { $0.quietUntil[device] = moment }
    }

    /// An envelope was written. Lowers the time if the envelope is due earlier.
    func arrived(_ row: InboxRow) {
        state.withLock { state in
            guard let quiet = state.quietUntil[row.device], row.waitsUntil < quiet else { return }
            state.quietUntil[row.device] = row.waitsUntil
        }
    }

    func forget(_ device: DeviceSerial) {
        state.withLock { state in
            state.usage[device] = nil
            state.quietUntil[device] = nil
        }
    }

    func forgetAll() {
        state.withLock { state in
            state.usage.removeAll()
            state.quietUntil.removeAll()
        }
    }
}
