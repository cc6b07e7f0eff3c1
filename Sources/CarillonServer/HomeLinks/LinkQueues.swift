import CarillonCore

/// The calls about devices that wait on a link. A queue contains the calls about one device, in their order. Queues are
/// independent of each other.
///
/// - *idle*: no call waits. The next call makes the queue busy.
/// - *busy*: one task takes the calls of the queue (``next(in:at:)``). The queue becomes idle when that task finds no call.
///
/// A queue is removed when it is idle and has no sessions. The number of waiting calls has no limit here, because ``LinkState``
/// limits them.
struct LinkQueues<Call: Sendable, Session: AnyObject & Sendable>: Sendable {
    typealias Instant = ContinuousClock.Instant

    enum Step {
        /// No call can be taken before this time.
        case wait(until: Instant)
        case call(Call, bytes: Int)
        /// The queue is idle.
        case done
    }

    private struct Queue {
        var calls = DelayedQueue<Call>()
        var isBusy = false
        /// The sessions that arrived, or are arriving, through this queue.
        var sessions: [ObjectIdentifier: Session] = [:]
        /// The devices of the sessions. Calls with their serial numbers use this queue as well.
        var devices: Set<DeviceSerial> = []
    }

    private var queues: [LinkQueueName: Queue] = [:]
    private var queueOfDevice: [DeviceSerial: LinkQueueName] = [:]
    private var busyCount = 0

    /// Whether no queue is busy.
    var isIdle: Bool { busyCount == 0 }

    /// The number of queues.
    var count: Int { queues.count }

    // MARK: Calls

    /// Adds a call, which can be taken from the given time on, after the earlier calls of its queue.
    ///
    /// - Returns: The queue if it became busy: a task must begin to take its calls. Nil if it was busy.
    mutating func append(_ call: Call, to name: LinkQueueName, bytes: Int = 0, due: Instant) -> LinkQueueName? {
        let name = queue(name)
        queues[name, default: Queue()].calls.append(call, bytes: bytes, due: due)
        guard queues[name]?.isBusy == false else { return nil }
        queues[name]?.isBusy = true
        busyCount += 1
        return name
    }

    /// Returns the next step of the task that takes the calls of a busy queue.
    mutating func next(in name: LinkQueueName, at now: Instant) -> Step {
        if let due = queues[name]?.calls.due {
            if due > now { return .wait(until: due) }
            if let (call, bytes) = queues[name]?.calls.popFirst() { return .call(call, bytes: bytes) }
        }
        queues[name]?.isBusy = false
        busyCount -= 1
        removeIfUnused(name)
        return .done
    }

    /// Removes calls of all queues. The queues stay busy until their tasks find no call.
    ///
    /// - Returns: The number of the removed calls and of their bytes.
    mutating func removeCalls(where isUnwanted: (Call) -> Bool) -> (count: Int, bytes: Int) {
        var removed = (count: 0, bytes: 0)
        for name in Array(queues.keys) {
            guard let calls = queues[name]?.calls.removeAll(where: isUnwanted) else { continue }
            removed.count += calls.count
            removed.bytes += calls.bytes
        }
        return removed
    }

    // MARK: Sessions and devices

    /// Adds a session that arrives through a queue with a waiting call.
    mutating func add(_ session: Session, to name: LinkQueueName) {
        queues[name]?.sessions[ObjectIdentifier(session)] = session
    }

    /// Removes a session that left or did not arrive.
    mutating func remove(_ session: Session, from name: LinkQueueName) {
        queues[name]?.sessions[ObjectIdentifier(session)] = nil
        removeIfUnused(name)
    }

    /// A session of the device arrived through a queue. From now on, calls with the serial number of the device use this queue.
    mutating func connect(_ device: DeviceSerial, to name: LinkQueueName) {
        queues[name]?.devices.insert(device)
        queueOfDevice[device] = name
    }

    /// Returns the sessions of the queue for calls about a device.
    func sessions(inQueueOf device: DeviceSerial) -> [Session] {
        queues[queue(.serial(device))].map { Array($0.sessions.values) } ?? []
    }

    private func queue(_ name: LinkQueueName) -> LinkQueueName {
        if case .serial(let device) = name { queueOfDevice[device] ?? name } else { name }
    }

    private mutating func removeIfUnused(_ name: LinkQueueName) {
        guard let queue = queues[name], !queue.isBusy, queue.sessions.isEmpty else { return }
        for device in queue.devices where queueOfDevice[device] == name { queueOfDevice[device] = nil }
        queues[name] = nil
    }
}
