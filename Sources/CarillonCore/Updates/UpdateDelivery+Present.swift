import CarillonWire
import Metrics
import Synchronization

/// Those that are there are told at once.
extension UpdateDelivery {
    struct Present {
        var devices: [AppSerial: [DeviceSerial: There]] = [:]
        /// Apps for which something was published that their devices were not told of yet.
        var pending: Set<AppSerial> = []
        var telling: Set<AppSerial> = []
    }

    struct There {
        var device: Device
        var profile: String
        var since: Timestamp
    }

    /// A device said something: as long as it is connected, or waits, what is published is put into its inbox at once.
    func note(_ device: Device, _ profile: String) {
        let there = There(device: device, profile: profile, since: time.now())
        present.withLock { $0.devices[device.app, default: [:]][device.serial] = there }
    }

    /// Of how many devices it is known that they were there.
    package var rememberedDevices: Int { present.withLock { $0.devices.values.reduce(0) { $0 + $1.count } } }

    /// Of devices that went nothing is remembered.
    func forgetAbsent() {
        let before = time.now().adding(seconds: -Self.rememberedSeconds)
        present.withLock { present in
            for (app, devices) in present.devices {
                let there = devices.filter { device, there in
                    let sessions = homes.home(of: device).sessions
                    return there.since > before || sessions.session(of: device) != nil || sessions.hasWaiters(device)
                }
                present.devices[app] = there.isEmpty ? nil : there
            }
        }
    }

    /// Between what it says and the wait for what comes of it a device is neither.
    private static let rememberedSeconds: Int64 = 5

    /// Tells those that are there. A task exists while there is somebody to tell, one an app.
    func published(_ update: Update) {
        let begins = present.withLock { present in
            guard present.devices[update.app] != nil else { return false }
            present.pending.insert(update.app)
            return present.telling.insert(update.app).inserted
        }
        if begins { Task { await self.tell(update.app) } }
    }

    private func tell(_ app: AppSerial) async {
        while true {
            let devices = present.withLock { present -> [There]? in
                guard present.pending.remove(app) != nil else {
                    present.telling.remove(app)
                    return nil
                }
                return present.devices[app].map { Array($0.values) } ?? []
            }
            guard let devices else { return }
            await withTaskGroup(of: Void.self) { group in
                for (place, there) in devices.enumerated() {
                    if place >= Self.devicesAtOnce { await group.next() }
                    group.addTask { await self.tell(there.device, there.profile) }
                }
            }
        }
    }

    private static let devicesAtOnce = 128

    private func tell(_ device: Device, _ profile: String) async {
        do {
            try await hold(try await binding(of: device, profile: profile), of: device)
        } catch {
            // It is held again when the device comes next.
            faults.increment()
        }
    }
}
