import CarillonCore
import Synchronization

/// How full the inboxes are, as far as it was asked: read from the store at the first touch of a device, and kept
/// right by everything that is written. A transaction that fails makes it forget all.
///
/// Only the store's one writing connection uses it, so that it moves with the transactions.
final class InboxUsage: Sendable {
    struct Amount: Equatable {
        var envelopes = 0
        var bytes = 0
    }

    private let amounts = Mutex<[DeviceSerial: Amount]>([:])
    private static let capacity = 100_000

    func amount(of device: DeviceSerial, otherwise read: () throws -> Amount) rethrows -> Amount {
        if let amount = amounts.withLock({ $0[device] }) { return amount }
        let amount = try read()
        amounts.withLock { amounts in
            if amounts.count >= Self.capacity { amounts.removeAll() }
            amounts[device] = amount
        }
        return amount
    }

    func added(_ bytes: Int, to device: DeviceSerial) {
        amounts.withLock { amounts in
            guard var amount = amounts[device] else { return }
            amount.envelopes += 1
            amount.bytes += bytes
            amounts[device] = amount
        }
    }

    func removed(_ bytes: Int, from device: DeviceSerial) {
        amounts.withLock { amounts in
            guard var amount = amounts[device] else { return }
            amount.envelopes -= 1
            amount.bytes -= bytes
            amounts[device] = amount
        }
    }

    func forget(_ device: DeviceSerial) {
        amounts.withLock { $0[device] = nil }
    }

    func forgetAll() {
        amounts.withLock { $0.removeAll() }
    }
}
