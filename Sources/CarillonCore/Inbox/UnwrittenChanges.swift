import CarillonWire

/// Changes that could not be written, and whose failure cannot be reported to a caller. They are written again. The changes of
/// one envelope keep their order.
struct UnwrittenChanges: Sendable {
    private let limit: Int
    private var changes: [DeviceSerial?: [Int64: [InboxOperation]]] = [:]
    /// The devices in the order in which their changes are tried. A device whose changes were removed meanwhile is skipped.
    private var order: [DeviceSerial?] = []
    private(set) var count = 0

    init(limit: Int) { self.limit = limit }

    var isEmpty: Bool { count == 0 }

    /// Returns false if the change was not kept because the limit is reached.
    mutating func add(_ operation: InboxOperation) -> Bool {
        guard let position = operation.id?.position else { return true }
        let device = operation.device
        let earlier = changes[device]?[position] ?? []
        if earlier.contains(where: { $0.repeats(operation) }) { return true }
        guard count < limit else { return false }
        if changes[device] == nil { order.append(device) }
        changes[device, default: [:]][position] = earlier + [operation.withoutBody]
        count += 1
        return true
    }

    /// Whether a change of this envelope is kept.
    func contains(_ id: MessageID) -> Bool {
        !isEmpty && changes.values.contains { $0[id.position]?.contains { $0.id == id } ?? false }
    }

    /// Whether the envelope is not in the store because the change that appends it is kept.
    func appends(_ id: MessageID, of device: DeviceSerial?) -> Bool {
        changes[device]?[id.position]?.contains { if case .append = $0 { true } else { false } } ?? false
    }

    mutating func take(of device: DeviceSerial) -> [InboxOperation] {
        guard !isEmpty else { return [] }
        return remove(device)
    }

    /// Removes and returns the changes of devices, until their number has reached `wanted`.
    mutating func take(atLeast wanted: Int) -> [InboxOperation] {
        var taken: [InboxOperation] = []
        var devices = 0
        while taken.count < wanted, devices < order.count {
            taken += remove(order[devices])
            devices += 1
        }
        order.removeFirst(devices)
        return taken
    }

    private mutating func remove(_ device: DeviceSerial?) -> [InboxOperation] {
        let taken = changes.removeValue(forKey: device).map { Array($0.values.joined()) } ?? []
        count -= taken.count
        return taken
    }
}

extension InboxOperation {
    /// The envelope that is changed; nil if the operation changes more than one.
    var id: MessageID? {
        switch self {
        case .append(let envelope, _), .record(let envelope, _, _), .replace(let envelope, _): envelope.id
        case .finish(let id, _, _), .forget(let id), .expire(let id, _): id
        case .end, .changeUser: nil
        }
    }

    /// The operation without the body of its envelope, if it writes an outcome: an outcome has no body.
    fileprivate var withoutBody: InboxOperation {
        switch self {
        case .record(let envelope, let rules, let finalOutcome): .record(envelope.trace, rules, finalOutcome)
        case .replace(let envelope, let rules): .replace(envelope.trace, rules)
        default: self
        }
    }

    /// Whether a later change is the same as this one.
    fileprivate func repeats(_ later: InboxOperation) -> Bool {
        guard case .finish(let id, _, let finalOutcome) = self, case .finish(id, _, let other) = later else { return false }
        return finalOutcome.outcome == other.outcome && finalOutcome.code == other.code
    }
}
