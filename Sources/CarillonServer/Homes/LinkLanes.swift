import CarillonCore

/// The calls about devices that wait on a link. A lane has the calls about one device, in their order. Lanes do not wait for each other.
///
/// - *idle*: no call waits. The next call makes the lane busy.
/// - *busy*: one task takes the calls of the lane (``next(in:at:)``). The lane becomes idle when that task finds no call.
///
/// A lane is removed when it is idle and has no sessions. The number of waiting calls has no limit here: ``LinkState`` admits them.
struct LinkLanes<Call: Sendable, Session: AnyObject & Sendable>: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Step {
        /// No call can be taken before this moment.
        case wait(until: Instant)
        case call(Call, bytes: Int)
        /// The lane is idle.
        case done
    }

    private struct Lane {
        var calls = DelayedQueue<Call>()
        var isBusy = false
        /// The sessions that arrived by this lane, or are about to.
        var sessions: [ObjectIdentifier: Session] = [:]
        /// The devices of the sessions. Calls with their serial numbers pass by this lane as well.
        var devices: Set<DeviceSerial> = []
    }

    private var lanes: [LinkLaneName: Lane] = [:]
    private var laneOfDevice: [DeviceSerial: LinkLaneName] = [:]
    private var busyCount = 0

    /// Whether no lane is busy.
    var isIdle: Bool { busyCount == 0 }

    /// The number of lanes.
    var count: Int { lanes.count }

    // MARK: Calls

    /// Adds a call, which can be taken from a moment on, and after the earlier calls of its lane.
    ///
    /// - Returns: The lane if it became busy: a task must begin to take its calls. Nil if it was busy.
    mutating func append(_ call: Call, to name: LinkLaneName, bytes: Int = 0, due: Instant) -> LinkLaneName? {
        let name = lane(name)
        lanes[name, default: Lane()].calls.append(call, bytes: bytes, due: due)
        guard lanes[name]?.isBusy == false else { return nil }
        lanes[name]?.isBusy = true
        busyCount += 1
        return name
    }

    /// Returns the next step of the task that takes the calls of a busy lane.
    mutating func next(in name: LinkLaneName, at now: Instant) -> Step {
        if let due = lanes[name]?.calls.due {
            if due > now { return .wait(until: due) }
            if let (call, bytes) = lanes[name]?.calls.popFirst() { return .call(call, bytes: bytes) }
        }
        lanes[name]?.isBusy = false
        busyCount -= 1
        removeIfUnused(name)
        return .done
    }

    /// Removes calls of all lanes. The lanes stay busy until their tasks find no call.
    ///
    /// - Returns: The number of the removed calls and of their bytes.
    mutating func removeCalls(where isUnwanted: (Call) -> Bool) -> (count: Int, bytes: Int) {
        var removed = (count: 0, bytes: 0)
        for name in Array(lanes.keys) {
            guard let calls = lanes[name]?.calls.removeAll(where: isUnwanted) else { continue }
            removed.count += calls.count
            removed.bytes += calls.bytes
        }
        return removed
    }

    // MARK: Sessions and devices

    /// A session arrives by a lane that has a call.
    mutating func add(_ session: Session, to name: LinkLaneName) {
        lanes[name]?.sessions[ObjectIdentifier(session)] = session
    }

    /// A session that arrived by a lane is gone, or did not arrive.
    mutating func remove(_ session: Session, from name: LinkLaneName) {
        lanes[name]?.sessions[ObjectIdentifier(session)] = nil
        removeIfUnused(name)
    }

    /// A session of the device arrived by a lane. Calls with the serial number of the device pass by this lane from now on.
    mutating func connect(_ device: DeviceSerial, to name: LinkLaneName) {
        lanes[name]?.devices.insert(device)
        laneOfDevice[device] = name
    }

    /// Returns the sessions of the lane by which the calls about a device pass.
    func sessions(inLaneOf device: DeviceSerial) -> [Session] {
        lanes[lane(.serial(device))].map { Array($0.sessions.values) } ?? []
    }

    private func lane(_ name: LinkLaneName) -> LinkLaneName {
        if case .serial(let device) = name { laneOfDevice[device] ?? name } else { name }
    }

    private mutating func removeIfUnused(_ name: LinkLaneName) {
        guard let lane = lanes[name], !lane.isBusy, lane.sessions.isEmpty else { return }
        for device in lane.devices where laneOfDevice[device] == name { laneOfDevice[device] = nil }
        lanes[name] = nil
    }
}
