import CarillonCore
import Synchronization

/// What is remembered of how devices can be pushed to: read from the store when it is first wanted of a device, and kept right
/// by everything that is written.
///
/// Only the store's one writing connection uses it, so that it moves with the transactions.
final class PushMemory: Sendable {
    struct Wake: Equatable {
        /// Nil when nothing is to be done.
        var dueAt: Timestamp?
        var isUnderWay = false
        var pace = WakePace()
    }

    struct Reach: Equatable {
        /// Nil of a device that has no token, or is suspended; then nothing else is known of it.
        var lane: PushLane?
        var wake: Wake?
        /// Alerts of messages in the outbox, and of what fired.
        var alerts = 0
        var triggers = 0
        /// When the last alert is due.
        var lastAlertAt: Timestamp?
        /// When an alert was last given out.
        var alertLeasedAt: Timestamp?
        /// When the device last answered for an envelope, as far as that was of interest.
        var answeredAt: Timestamp?
        /// Pushes that are kept, over or not.
        var kept = 0
        /// No envelope before this position waits that the device is to be woken for.
        var quietBefore: Int64 = 0

        /// Takes over what no table has.
        mutating func follow(_ earlier: Reach?) {
            guard let earlier else { return }
            alertLeasedAt = earlier.alertLeasedAt
            answeredAt = earlier.answeredAt
            quietBefore = earlier.quietBefore
        }
    }

    private struct State {
        var devices: RecentValues<DeviceSerial, Reach>
        /// Whether an app has a text to be shown.
        var alertTexts: RecentValues<AppSerial, Bool>
        /// When devices last said that their address is their own; the store has it to the day.
        var confirmed: RecentValues<DeviceSerial, Timestamp>
    }

    private let state: Mutex<State>

    init(capacity: Int = 50_000) {
        state = Mutex(
            State(
                devices: RecentValues(capacity: capacity), alertTexts: RecentValues(capacity: 1000),
                confirmed: RecentValues(capacity: capacity)))
    }

    subscript(device: DeviceSerial) -> Reach? {
        get { state.withLock { $0.devices[device] } }
        set { state.withLock { $0.devices[device] = newValue } }
    }

    func hasAlertText(_ app: AppSerial) -> Bool? { state.withLock { $0.alertTexts[app] } }

    func noteAlertText(of app: AppSerial, _ isThere: Bool?) { state.withLock { $0.alertTexts[app] = isThere } }

    func lastConfirmed(_ device: DeviceSerial) -> Timestamp? { state.withLock { $0.confirmed[device] } }

    func noteConfirmed(_ device: DeviceSerial, at now: Timestamp) { state.withLock { $0.confirmed[device] = now } }

    func forgetAll() {
        state.withLock { state in
            state.devices.removeAll()
            state.alertTexts.removeAll()
            state.confirmed.removeAll()
        }
    }
}
