import CarillonWire

/// The devices of an app that are there, with an index by what they say of themselves: a new update is evaluated for those alone that may
/// belong to its audience.
struct PresentDevices {
    struct There {
        var device: Device
        var profile: String
        var since: Timestamp
        /// What the log was last evaluated for; nil while that is under way, when every update may be for it.
        var snapshot: EvaluationSnapshot?
        var facts: DeviceFacts?
    }

    private(set) var devices: [DeviceSerial: There] = [:]
    private var keyed: [Audience.Key: Set<DeviceSerial>] = [:]
    /// Of which not everything is known.
    private var unknown: Set<DeviceSerial> = []
    /// The published updates that the devices were not notified of.
    private(set) var pending: [UpdateSerial] = []
    private(set) var isNotifying = false
    /// Devices that could not be told.
    var missed: Set<DeviceSerial> = []
    /// The place in the log up to which the devices were notified in the last sweep; nil if it is not known. Only for an app whose updates
    /// other homes change.
    private var notified: (revision: Int64, last: UpdateSerial)?
    /// The updates that the devices were notified of since then.
    private var notifiedSince: Set<UpdateSerial> = []

    /// A device said something. What it said before counts no more, unless its binding is as it was.
    mutating func note(_ there: There, _ binding: UpdateBinding) {
        let device = there.device.serial
        if let snapshot = devices[device]?.snapshot, snapshot.binding == binding.serial, snapshot.revision == binding.revision {
            devices[device]?.since = there.since
            return
        }
        remove(device)
        devices[device] = there
        unknown.insert(device)
    }

    /// It says something else of itself from now on.
    mutating func changes(_ device: DeviceSerial) {
        guard var there = devices[device], there.snapshot != nil else { return }
        remove(device)
        (there.snapshot, there.facts) = (nil, nil)
        devices[device] = there
        unknown.insert(device)
    }

    // MARK: Telling

    /// Adds an update of which the devices must be notified.
    ///
    /// - Parameter isShared: Whether other homes change updates.
    /// - Returns: Whether a task must begin that notifies the devices.
    mutating func add(_ update: UpdateSerial, isShared: Bool) -> Bool {
        guard !devices.isEmpty else { return false }
        pending.append(update)
        if isShared { notifiedSince.insert(update) }
        return begins()
    }

    /// Adds the updates that another home published without a hint that reached this home.
    ///
    /// - Returns: Whether a task must begin that notifies the devices.
    mutating func addPending(of log: UpdateLogs.Log) -> Bool {
        let before = notified
        let last = max(log.live.last, before?.last ?? UpdateSerial(0))
        notified = (log.mark.revision, last)
        let updates = log.live.serialsInOrder.filter { update in
            before.map { update > $0.last } ?? false && !notifiedSince.contains(update)
        }
        notifiedSince = notifiedSince.filter { $0 > last }
        if before?.revision != log.mark.revision {
            // Any update of the log can be one that the devices were not notified of.
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

    /// Takes the updates of which the present devices were not notified. Without such an update, the notification ends.
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

    /// The log was evaluated for a device that is there.
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

    /// Those that may belong to an update's audience: all that do are among them.
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
