import CarillonWire

/// The devices of an app that are connected or poll, with an index by their parameters. A new update is evaluated only for
/// devices that may match its audience.
struct PresentDevices {
    struct There {
        var device: Device
        var profile: String
        var since: Timestamp
        /// The state for which the log was last evaluated; nil during an evaluation, in which every update may match.
        var snapshot: EvaluationSnapshot?
        var facts: DeviceFacts?
    }

    private(set) var devices: [DeviceSerial: There] = [:]
    private var keyed: [Audience.Key: Set<DeviceSerial>] = [:]
    /// Devices whose parameters are not known completely.
    private var unknown: Set<DeviceSerial> = []
    /// The published updates that the devices were not notified of.
    private(set) var pending: [UpdateSerial] = []
    private(set) var isNotifying = false
    /// Devices that could not be notified.
    var missed: Set<DeviceSerial> = []
    /// The place in the log up to which the devices were notified in the last sweep; nil if it is not known. Used only for an app
    /// whose updates other homes change.
    private var notified: (revision: Int64, last: UpdateSerial)?
    /// The updates that the devices were notified of since then.
    private var notifiedSince: Set<UpdateSerial> = []

    /// Notes a device that reported something. Its earlier parameters are ignored, unless its binding is unchanged.
    mutating func note(_ there: There, _ binding: UpdateBinding) {
        let device = there.device.serial
        if let snapshot = devices[device]?.snapshot, snapshot.binding == binding.serial,
            snapshot.revision == binding.revision
        {
            devices[device]?.since = there.since
            return
        }
        remove(device)
        devices[device] = there
        unknown.insert(device)
    }

    /// Notes that the parameters of a device are being changed.
    mutating func changes(_ device: DeviceSerial) {
        guard var there = devices[device], there.snapshot != nil else { return }
        remove(device)
        (there.snapshot, there.facts) = (nil, nil)
        devices[device] = there
        unknown.insert(device)
    }

    // MARK: Notifying

    /// Adds an update that the devices must be notified of.
    ///
    /// - Parameter isShared: Whether other homes change updates.
    /// - Returns: Whether the caller must start a task that notifies the devices.
    mutating func add(_ update: UpdateSerial, isShared: Bool) -> Bool {
        guard !devices.isEmpty else { return false }
        pending.append(update)
        if isShared { notifiedSince.insert(update) }
        return begins()
    }

    /// Adds the updates that another home published and whose hints did not reach this home.
    ///
    /// - Returns: Whether the caller must start a task that notifies the devices.
    mutating func addPending(of log: UpdateLogs.Log) -> Bool {
        let before = notified
        let last = max(log.live.last, before?.last ?? UpdateSerial(0))
        notified = (log.mark.revision, last)
        let updates = log.live.serialsInOrder.filter { update in
            before.map { update > $0.last } ?? false && !notifiedSince.contains(update)
        }
        notifiedSince = notifiedSince.filter { $0 > last }
        if before?.revision != log.mark.revision {
            // Any update of the log can be one of which the devices were not notified.
            missed.formUnion(devices.values.filter { $0.snapshot?.isOf(log) != true }.map(\.device.serial))
        }
        guard !devices.isEmpty, !updates.isEmpty else { return false }
        pending += updates
        return begins()
    }

    private mutating func begins() -> Bool {
        defer { isNotifying = true }
        return !isNotifying
    }

    /// Returns and removes the updates of which the present devices were not notified. Without such an update, the notification
    /// ends.
    mutating func takePending() -> [UpdateSerial] {
        defer { pending = [] }
        if pending.isEmpty { isNotifying = false }
        return pending
    }

    mutating func missAll() { missed = Set(devices.keys) }

    mutating func takeMissed() -> [There] {
        defer { missed = [] }
        return missed.compactMap { devices[$0] }
    }

    /// Notes that the log was evaluated for a present device.
    mutating func evaluated(_ device: DeviceSerial, _ snapshot: EvaluationSnapshot, _ facts: DeviceFacts) {
        guard var there = devices[device] else { return }
        remove(device)
        (there.snapshot, there.facts) = (snapshot, facts)
        devices[device] = there
        for key in facts.keys { keyed[key, default: []].insert(device) }
    }

    mutating func remove(_ device: DeviceSerial) {
        guard let there = devices.removeValue(forKey: device) else { return }
        unknown.remove(device)
        for key in there.facts?.keys ?? [] {
            keyed[key]?.remove(device)
            if keyed[key]?.isEmpty == true { keyed[key] = nil }
        }
    }

    /// Returns the devices that may match an update's audience. All matching devices are included.
    func candidates(for entry: LiveUpdates.Entry, in log: UpdateLogs.Log) -> [There] {
        let known: [There]
        switch entry.keys {
        case nil: known = devices.values.filter { $0.facts != nil }
        case let keys?:
            var serials: Set<DeviceSerial> = []
            for key in keys { serials.formUnion(keyed[key] ?? []) }
            known = serials.compactMap { devices[$0] }
        }
        let matching = known.filter { there in
            guard let facts = there.facts, there.snapshot?.rules == log.version else { return true }
            return log.holds(entry, for: facts) == true
        }
        return matching + unknown.compactMap { devices[$0] }
    }
}
