import CarillonCore
import GRDB

/// Removes devices, and remaining rows of deleted apps and devices, a limited number of rows in one transaction.
struct Deletions {
    private let db: Database
    private let inboxes: InboxTransaction
    private let settings: StoreSettings

    init(_ db: Database, _ inboxes: InboxTransaction, settings: StoreSettings) {
        self.db = db
        self.inboxes = inboxes
        self.settings = settings
    }

    /// Removes a device and its channels, and its envelopes up to the limit; the others are removed later. Returns nil if there
    /// is no such device, or if it was seen after the cutoff.
    func remove(
        _ device: DeviceSerial, unlessSeenAfter cutoff: RetentionCutoff? = nil, because reason: DisconnectReason,
        at now: Timestamp, limit: Int
    ) throws -> (channels: [ChannelSerial], rows: Int)? {
        guard let (facts, channels) = try RegistrationReader(db).endFacts(of: device),
            let changes = RegistrationRules.end(unlessSeenAfter: cutoff, knowing: facts)
        else { return nil }
        try WatchTransaction(db).channelsEnd(
            "device = ?", [device.rawValue], because: reason, at: now, limits: settings.callbacks)
        try SubscriptionTable(db).remove("device = ?", [device.rawValue])
        try AttachmentTable(db).deviceGone(device, of: changes.app)
        try RegistrationChangeWriter(db).writeEnd(changes)
        try inboxes.endRequests(of: device)
        try inboxes.cancelPushes(of: device, at: now)
        let (rows, isDone) = try inboxes.end(limit, of: device, at: now)
        if !isDone { try db.run("INSERT INTO ended_device (serial) VALUES (?)", [device.rawValue]) }
        return (channels, rows + channels.count + 1)
    }

    /// Does the next part of the remaining deletions.
    func next(at now: Timestamp, limit: Int) throws -> DeletionStep {
        if let device = try Int64.first(db, "SELECT serial FROM ended_device LIMIT 1") {
            if try inboxes.end(limit, of: DeviceSerial(device), at: now).isDone {
                try db.run("DELETE FROM ended_device WHERE serial = ?", [device])
            }
            return DeletionStep(isDone: false)
        }
        guard let app = try Int64.first(db, "SELECT serial FROM app WHERE ended_at IS NOT NULL LIMIT 1") else {
            return DeletionStep(isDone: true)
        }
        var step = DeletionStep(isDone: false)
        var left = limit
        while left > 0 {
            let items = try ItemTable(db).remove(left, of: AppSerial(app))
            guard items == 0 else {
                left -= items
                continue
            }
            let next = "SELECT serial FROM device WHERE app = ? LIMIT 1"
            guard let device = try Int64.fetchOne(db.cachedStatement(sql: next), arguments: [app]).map(DeviceSerial.init)
            else {
                try db.run("DELETE FROM released_token WHERE app = ?", [app])
                try UpdateTable(db).remove(of: AppSerial(app))
                try db.run("DELETE FROM app WHERE serial = ?", [app])
                try CounterTable(db).remove(AppSerial(app))
                break
            }
            guard let removed = try remove(device, because: .appDeleted, at: now, limit: left) else { break }
            step.removed.devices.append(device)
            step.removed.channels += removed.channels
            left -= removed.rows
        }
        return step
    }
}
