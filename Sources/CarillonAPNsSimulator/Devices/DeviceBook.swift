/// The device tokens that the service knows, and what waits for them.
///
/// A device that is online is shown each notification at once. For one that is offline the service keeps the newest
/// notification of each app, until it expires, at most 30 days; an expiration of 0 is not kept at all.
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

    /// How many shown notifications are remembered for a device; the oldest are forgotten.
    var shownLimit = 1000
    private var records: [Key: Record] = [:]

    var devices: [Device] { records.values.map(\.device).sorted { $0.token < $1.token } }

    var isEmpty: Bool { records.isEmpty }

    subscript(key: Key) -> Device? { records[key]?.device }

    /// Adds a device or changes one; what was shown and what waits stays.
    mutating func put(_ device: Device, at now: Timestamp) {
        let key = Key(token: device.token, environment: device.environment)
        records[key, default: Record(device: device)].device = device
        if device.isOnline, device.state == .active { cameOnline(key, at: now) }
    }

    mutating func remove(_ key: Key) -> Bool { records.removeValue(forKey: key) != nil }

    /// Counts a request to a device; false when there were more than `limit` in this minute.
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

    /// A push was accepted. Nothing happens for devices that are not in the book.
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

    /// What became of the pushes to a device; nil when it is not in the book.
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
