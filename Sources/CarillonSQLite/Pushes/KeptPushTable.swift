import CarillonCore
import CarillonWire
import GRDB

/// The contents of pushes that are sent even if their envelope was acknowledged before, inside a transaction.
struct KeptPushTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func insert(_ push: Int64, _ envelope: Envelope) throws {
        guard case .fired(let body, let countsBadge) = envelope.kind else { return }
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO kept_push (push, message, app, subscription, subscription_id, urgency, accepted_at, counts_badge, body)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        insert.bind(push)
        insert.bind(envelope.id.secret)
        insert.bind(envelope.app.rawValue)
        insert.bind(envelope.origin.serial)
        insert.bind(envelope.origin.id)
        insert.bind(envelope.urgency.number)
        insert.bind(envelope.acceptedAt.milliseconds)
        insert.bind(countsBadge ? 1 : 0)
        insert.bind(body)
        try insert.run()
    }

    /// Returns the original envelope; nil if its subscription was deleted.
    func envelope(
        _ push: Int64, at position: Int64, of device: DeviceSerial, expiresAt: Timestamp
    ) throws -> Envelope? {
        var select = try BoundStatement(
            db,
            """
            SELECT message, kept.app, kept.subscription, subscription_id, urgency, accepted_at, counts_badge, body
            FROM kept_push AS kept JOIN subscription ON subscription.serial = kept.subscription
                AND subscription.status < \(SubscriptionTable.endedStatus)
            WHERE push = ?
            """)
        select.bind(push)
        return try select.first { columns in
            Envelope(
                id: MessageID(position: position, secret: try columns.bytes16(0)), device: device,
                app: AppSerial(columns.integer(1)),
                origin: Origin(.subscription, serial: columns.integer(2), id: try columns.bytes16(3)),
                kind: .fired(body: columns.bytes(7) ?? [], countsBadge: columns.integer(6) != 0),
                acceptedAt: columns.timestamp(5), expiresAt: expiresAt,
                urgency: Urgency(number: Int(columns.integer(4))) ?? .normal)
        }
    }

    func remove(_ push: Int64) throws { try db.run("DELETE FROM kept_push WHERE push = ?", [push]) }

    func removeAll(of device: DeviceSerial) throws {
        try db.run("DELETE FROM kept_push WHERE push IN (SELECT serial FROM push WHERE device = ?)", [device.rawValue])
    }
}
