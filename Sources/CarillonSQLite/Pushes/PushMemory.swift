import CarillonCore
import Synchronization

/// What is remembered of how devices can be pushed to: read from the store when it is first wanted of a device, and kept right
/// by everything that is written.
///
/// Only the store's one writing connection uses it, so that it moves with the transactions.
final class PushMemory: Sendable {
    private struct State {
        var devices: LRUCache<DeviceSerial, PushReach>
        /// Whether an app has a text to be shown.
        var alertTexts: LRUCache<AppSerial, Bool>
    }

    private let state: Mutex<State>

    init(capacity: Int = 50_000) {
        state = Mutex(
            State(devices: LRUCache(capacity: capacity), alertTexts: LRUCache(capacity: 1000)))
    }

    subscript(device: DeviceSerial) -> PushReach? {
        get { state.withLock { $0.devices[device] } }
        set { state.withLock { $0.devices[device] = newValue } }
    }

    func hasAlertText(_ app: AppSerial) -> Bool? { state.withLock { $0.alertTexts[app] } }

    func noteAlertText(of app: AppSerial, _ isThere: Bool?) { state.withLock { $0.alertTexts[app] = isThere } }

    func forgetAll() {
        state.withLock { state in
            state.devices.removeAll()
            state.alertTexts.removeAll()
        }
    }
}
