import CarillonWire
import Metrics
import Synchronization

/// Notifies present devices at once.
extension UpdateDelivery {
    /// Notes a device that reported something. While it is connected or polls, published updates are put into its inbox at once.
    func note(_ device: Device, _ profile: String, _ binding: UpdateBinding) {
        let there = PresentDevices.There(device: device, profile: profile, since: time.now())
        present.withLock { $0[device.app, default: .init()].note(there, binding) }
    }

    /// Whether a connection can receive updates.
    ///
    /// - Parameter version: The version of Carillon's extension that the connection speaks.
    package static func isKnown(toVersion version: Int) -> Bool { version >= EnvelopeKind.update.behaviour.firstVersion }

    /// Handles the connection of a device that has polled before: updates that were published since are put into its inbox, and
    /// new updates at once. The connection can receive updates (``isKnown(toVersion:)``).
    package func connected(_ device: Device) async {
        do {
            // Most apps publish nothing. With other homes, the device may be noted only at the home from which it moved.
            let log = try await logs.log(of: device.app)
            guard logs.isShared || log.live.count > 0 || log.expiredContent.rawValue > 0 || log.version > 0,
                let binding = try await store.presentBinding(of: device.serial)
            else { return }
            note(device, binding.profile, binding)
            try await evaluate(binding, of: device)
            try await resendDue(to: binding.serial)
        } catch {
            // The log is evaluated when the device next polls or connects.
            faults.increment()
        }
    }

    /// Notes that the whole log was evaluated for a device.
    func note(_ snapshot: EvaluationSnapshot, _ facts: DeviceFacts, of device: Device) {
        present.withLock { $0[device.app]?.evaluated(device.serial, snapshot, facts) }
    }

    func lastSnapshot(_ device: Device) -> EvaluationSnapshot? {
        present.withLock { $0[device.app]?.devices[device.serial]?.snapshot }
    }

    /// The number of devices that are remembered as present.
    package var rememberedDevices: Int { present.withLock { $0.values.reduce(0) { $0 + $1.devices.count } } }

    /// Removes devices that are not present any more.
    func forgetAbsent() {
        let before = time.now().adding(seconds: -Self.rememberedSeconds)
        present.withLock { present in
            for app in Array(present.keys) {
                for (device, there) in present[app]?.devices ?? [:] {
                    let isThere = there.since > before || home.isPresent(device)
                    if !isThere { present[app]?.remove(device) }
                }
                if present[app]?.devices.isEmpty == true, present[app]?.isNotifying == false { present[app] = nil }
            }
        }
    }

    /// Between a poll's report and its wait for data, a device is neither connected nor waiting.
    private static let rememberedSeconds: Int64 = 5

    /// Offers an update to the devices of all homes that are connected or poll.
    func published(_ update: Update) {
        notify(update.serial, of: update.app)
        if logs.isShared { others.hint(UpdatePublished(update: update.serial, app: update.app)) }
    }

    /// Offers an update that was published or resumed to the present devices of this home. One task for each app offers updates,
    /// and ends when all are offered.
    package func notify(_ update: UpdateSerial, of app: AppSerial) {
        let begins = present.withLock { $0[app]?.add(update, isShared: logs.isShared) ?? false }
        if begins { Task { await self.notify(app) } }
    }

    /// Offers updates that another home published to the present devices, if the hints of the other home were lost.
    func notifyWithoutHints() async {
        guard logs.isShared else { return }
        for app in present.withLock({ Array($0.keys) }) {
            do {
                let log = try await logs.log(of: app)
                let begins = present.withLock { $0[app]?.addPending(of: log) ?? false }
                if begins { Task { await self.notify(app) } }
            } catch {
                // The next sweep repeats the attempt.
                faults.increment()
            }
        }
    }

    private func notify(_ app: AppSerial) async {
        while true {
            let pending = present.withLock { $0[app]?.takePending() ?? [] }
            guard !pending.isEmpty else { return }
            var devices: [DeviceSerial: PresentDevices.There] = [:]
            do {
                let log = try await logs.log(of: app)
                let entries = pending.compactMap { log.live[$0] }
                present.withLock { present in
                    for entry in entries {
                        for there in present[app]?.candidates(for: entry, in: log) ?? [] {
                            devices[there.device.serial] = there
                        }
                    }
                }
            } catch {
                // The devices are notified by the sweep, or when they next poll or connect.
                present.withLock { $0[app]?.missAll() }
                faults.increment()
            }
            await withTaskGroup(of: Void.self) { group in
                for (place, there) in devices.values.enumerated() {
                    if place >= Self.devicesAtOnce { await group.next() }
                    group.addTask { await self.notify(there.device, there.profile) }
                }
            }
        }
    }

    private static let devicesAtOnce = 128

    private func notify(_ device: Device, _ profile: String) async {
        // The device's new home evaluates the log for it when the device arrives or polls there.
        guard home.has(device.serial) else { return }
        do {
            // The device may have another user or profile by now.
            guard let binding = try await store.presentBinding(of: device.serial), binding.profile == profile else { return }
            try await evaluate(binding, of: device)
        } catch {
            // The device is notified by the sweep, or when it next polls or connects.
            present.withLock { _ = $0[device.app]?.missed.insert(device.serial) }
            faults.increment()
        }
    }

    /// Notifies present devices that could not be notified of a published update.
    func notifyMissed() async {
        let missed = present.withLock { present in
            var missed: [PresentDevices.There] = []
            for app in present.keys where present[app]?.missed.isEmpty == false {
                missed += present[app]?.takeMissed() ?? []
            }
            return missed
        }
        for there in missed { await notify(there.device, there.profile) }
    }
}

/// The state of a log and of a binding for which the log was evaluated.
struct EvaluationSnapshot: Equatable, Sendable {
    var binding: BindingSerial
    var revision: Int64
    /// The version of the rules.
    var rules: Int64
    private var last: UpdateSerial
    private var expired: UpdateSerial

    init(binding: BindingSerial, revision: Int64, _ log: UpdateLogs.Log) {
        self.binding = binding
        self.revision = revision
        rules = log.version
        (last, expired) = (log.live.last, log.expiredContent)
    }

    /// Whether the log is unchanged since the evaluation.
    func isOf(_ log: UpdateLogs.Log) -> Bool { self == EvaluationSnapshot(binding: binding, revision: revision, log) }
}
