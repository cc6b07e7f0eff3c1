import CarillonCore
import GRDB

/// Writes the decisions of ``FiringRules``, inside a transaction.
struct FiringChangeWriter {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func write(_ changes: FiringChanges) throws {
        if !changes.removed.isEmpty { try remove(changes.removed) }
        if !changes.added.isEmpty { try insert(changes.added) }
        if !changes.dues.isEmpty { try setDue(changes.dues) }
        if !changes.subscriptions.isEmpty { try update(changes.subscriptions) }
        if !changes.watches.isEmpty { try update(changes.watches) }
    }

    private func remove(_ numbers: [Int64]) throws {
        var delete = try BoundStatement(db, "DELETE FROM held_firing WHERE serial = ?")
        for number in numbers {
            delete.bind(number)
            try delete.run()
        }
    }

    private func insert(_ firings: [ThrottledFiring]) throws {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO held_firing (subscription, device, item, revision, notification, bytes, ttl, is_always_pushed,
                is_distinct)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        for throttled in firings {
            insert.bind(throttled.target.subscription.rawValue)
            insert.bind(throttled.device.rawValue)
            insert.bind(throttled.item.text)
            insert.bind(throttled.target.revision)
            insert.bind(throttled.body)
            insert.bind(throttled.body.count)
            insert.bind(throttled.ttl)
            insert.bind(throttled.isAlwaysPushed ? 1 : 0)
            insert.bind(throttled.isDistinct ? 1 : 0)
            try insert.run()
        }
    }

    private func setDue(_ dues: [FiringKey: Timestamp]) throws {
        var update = try BoundStatement(
            db,
            """
            UPDATE held_firing SET due_at = ?
            WHERE serial = (SELECT min(serial) FROM held_firing WHERE subscription = ? AND item = ?)
            """)
        for (key, dueAt) in dues {
            update.bind(dueAt.milliseconds)
            update.bind(key.subscription.rawValue)
            update.bind(key.item.text)
            try update.run()
        }
    }

    private func update(_ subscriptions: [SubscriptionSerial: SubscriptionMachine]) throws {
        var update = try BoundStatement(db, "UPDATE subscription SET fired_at = ? WHERE serial = ?")
        for (serial, machine) in subscriptions {
            // Other policies do not change the status. Each write of the status updates the indexes whose conditions contain it.
            guard machine.policy != .once else {
                try updateStatus(machine, of: serial)
                continue
            }
            update.bind(machine.lastFiredAt?.milliseconds)
            update.bind(serial.rawValue)
            try update.run()
        }
    }

    private func updateStatus(_ machine: SubscriptionMachine, of serial: SubscriptionSerial) throws {
        var update = try BoundStatement(
            db, "UPDATE subscription SET status = ?, status_at = ?, fired_at = ? WHERE serial = ?")
        update.bind(machine.status.number)
        update.bind(machine.statusAt.milliseconds)
        update.bind(machine.lastFiredAt?.milliseconds)
        update.bind(serial.rawValue)
        try update.run()
    }

    private func update(_ watches: [FiringKey: FiringWatch]) throws {
        var update = try BoundStatement(
            db,
            "UPDATE subscription_item SET last_firing = ?, told_at = ? WHERE app = ? AND item = ? AND subscription = ?")
        for (key, watch) in watches {
            update.bind(watch.lastFiring)
            update.bind(watch.notifiedAt?.milliseconds)
            update.bind(watch.app.rawValue)
            update.bind(key.item.text)
            update.bind(key.subscription.rawValue)
            try update.run()
        }
    }
}
