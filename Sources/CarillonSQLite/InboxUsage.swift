import CarillonCore
import Synchronization

/// How full the inboxes are, as far as it was asked: read from the store at the first touch of a device, and kept
/// right by everything that is written. A transaction that fails makes it forget all; of devices that were not touched for
/// long it forgets by itself.
///
/// Only the store's one writing connection uses it, so that it moves with the transactions.
final class InboxUsage: Sendable {
    struct Amount: Equatable {
        var envelopes = 0
        var bytes = 0
    }

    /// Rows that are kept for their own sake, of which a device may have so many.
    enum Kept: Hashable {
        case outcomes
        case keys
    }

    private struct KeptKey: Hashable {
        var kind: Kept
        var device: DeviceSerial
    }

    private struct State {
        var amounts: RecentValues<DeviceSerial, Amount>
        var kept: RecentValues<KeptKey, Int>
    }

    private let state: Mutex<State>

    init(capacity: Int = 50_000) {
        state = Mutex(State(amounts: RecentValues(capacity: capacity), kept: RecentValues(capacity: capacity)))
    }

    func amount(of device: DeviceSerial, otherwise read: () throws -> Amount) rethrows -> Amount {
        if let amount = state.withLock({ $0.amounts[device] }) { return amount }
        let amount = try read()
        state.withLock { $0.amounts[device] = amount }
        return amount
    }

    func added(_ bytes: Int, to device: DeviceSerial) { change(device, envelopes: 1, bytes: bytes) }

    func removed(_ bytes: Int, from device: DeviceSerial) { change(device, envelopes: -1, bytes: -bytes) }

    private func change(_ device: DeviceSerial, envelopes: Int, bytes: Int) {
        state.withLock { state in
            guard var amount = state.amounts[device] else { return }
            amount.envelopes += envelopes
            amount.bytes += bytes
            state.amounts[device] = amount
        }
    }

    /// How many rows of a kind a device has, after so many were added or removed; nil when it is not known.
    func changeKept(_ kind: Kept, of device: DeviceSerial, by change: Int) -> Int? {
        state.withLock { state in
            let key = KeptKey(kind: kind, device: device)
            guard let count = state.kept[key] else { return nil }
            state.kept[key] = count + change
            return count + change
        }
    }

    func setKept(_ kind: Kept, of device: DeviceSerial, to count: Int) {
        state.withLock { $0.kept[KeptKey(kind: kind, device: device)] = count }
    }

    func forget(_ device: DeviceSerial) {
        state.withLock { state in
            state.amounts[device] = nil
            for kind in [Kept.outcomes, .keys] { state.kept[KeptKey(kind: kind, device: device)] = nil }
        }
    }

    func forgetAll() {
        state.withLock { state in
            state.amounts.removeAll()
            state.kept.removeAll()
        }
    }
}
