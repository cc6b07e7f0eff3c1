/// The device tokens of the simulator, with the notifications that wait for each device.
///
/// A device that is online shows each notification immediately. For a device that is offline, the newest notification of each
/// app is stored until it expires, for at most 30 days. A notification with an expiration of 0 is not stored.
struct DeviceBook: Sendable {
    typealias Delivered = APNsSimulator.DeliveredNotification

    struct Key: Hashable, Sendable {
        var token: String
        var environment: Environment
    }

    private struct Record: Sendable {
        var device: Device
        var shown: [Delivered] = []
        var waiting: [String: Delivered] = [:]
        var replaced = 0
        var discarded = 0
        var expired = 0
        var windowStart = Timestamp(milliseconds: 0)
        var requestsInWindow = 0
    }

    static let longestStorage = Duration.days(30)

    /// How many shown notifications are kept for a device. The oldest are removed.
    var shownLimit = 1000
    private var records: [Key: Record] = [:]

    var devices: [Device] { records.values.map(\.device).sorted { $0.token < $1.token } }

    var isEmpty: Bool { records.isEmpty }

    subscript(key: Key) -> Device? { records[key]?.device }

    /// Adds or changes a device. Its shown and waiting notifications are kept.
    mutating func put(_ device: Device, at now: Timestamp) {
        let key = Key(token: device.token, environment: device.environment)
        records[key, default: Record(device: device)].device = device
        if device.isOnline, device.state == .active { cameOnline(key, at: now) }
    }

    mutating func remove(_ key: Key) -> Bool { records.removeValue(forKey: key) != nil }

    /// Counts a request to a device. Returns false if there were more than `limit` in this minute.
    mutating func counted(_ key: Key, limit: Int, at now: Timestamp) -> Bool {
        guard var record = records.removeValue(forKey: key) else { return true }
        defer { records[key] = record }
        if now >= record.windowStart + .minutes(1) {
            record.windowStart = now
            record.requestsInWindow = 0
        }
        record.requestsInWindow += 1
        return record.requestsInWindow <= limit
    }

    /// Records an accepted push. A push to a device that is not in the book is ignored.
    mutating func accepted(_ notification: Delivered, for key: Key) {
        guard var record = records.removeValue(forKey: key) else { return }
        defer { records[key] = record }
        guard !record.device.isOnline else { return show(notification, on: &record) }
        guard notification.expiresAt != nil else {
            record.discarded += 1
            return
        }
        if record.waiting.updateValue(notification, forKey: PushType.bundleID(of: notification.topic)) != nil {
            record.replaced += 1
        }
    }

    private mutating func cameOnline(_ key: Key, at now: Timestamp) {
        guard var record = records.removeValue(forKey: key) else { return }
        defer { records[key] = record }
        expire(&record, at: now)
        for notification in record.waiting.values.sorted(by: { $0.acceptedAt < $1.acceptedAt }) {
            show(notification, on: &record)
        }
        record.waiting = [:]
    }

    private func show(_ notification: Delivered, on record: inout Record) {
        if let collapseID = notification.collapseID,
            let index = record.shown.firstIndex(where: {
                $0.collapseID == collapseID && $0.topic == notification.topic
            })
        {
            record.shown.remove(at: index)
            record.replaced += 1
        }
        record.shown.append(notification)
        if record.shown.count > shownLimit { record.shown.removeFirst(record.shown.count - shownLimit) }
    }

    private func expire(_ record: inout Record, at now: Timestamp) {
        let before = record.waiting.count
        record.waiting = record.waiting.filter { ($0.value.expiresAt ?? 0) > now.milliseconds }
        record.expired += before - record.waiting.count
    }

    /// Returns the results of the pushes to a device; nil if it is not in the book.
    mutating func report(_ key: Key, at now: Timestamp) -> APNsSimulator.DeviceReport? {
        guard var record = records[key] else { return nil }
        expire(&record, at: now)
        records[key] = record
        return APNsSimulator.DeviceReport(
            device: record.device, shown: record.shown,
            waiting: record.waiting.values.sorted { $0.acceptedAt < $1.acceptedAt }, replaced: record.replaced,
            discarded: record.discarded, expired: record.expired)
    }
}
