import CarillonCore
import CarillonWire
import GRDB
import Metrics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Writes the decisions of ``WatchRules``, inside a transaction.
struct WatchChangeWriter {
    private let db: Database
    private let queues: WorkQueues

    init(_ db: Database) {
        self.db = db
        queues = WorkQueues(db)
    }

    /// Returns the serial number of the watch that was stored, if there is one.
    @discardableResult
    func write(_ changes: WatchChanges) throws -> WatchSerial? {
        for end in changes.leases { try write(end) }
        let watch = try changes.put.map { try write($0) }
        for state in changes.states { try write(state) }
        if !changes.movedPings.isEmpty { try queues.setDue(changes.movedPings) }
        for callback in changes.callbacks { try insert(callback) }
        for (callback, attempts) in changes.attempts {
            try db.run("UPDATE disconnect_callback SET attempts = ? WHERE serial = ?", [attempts, callback])
        }
        for callback in changes.removedCallbacks {
            try queues.remove(.callback, of: callback)
            try db.run("DELETE FROM disconnect_callback WHERE serial = ?", [callback])
        }
        for watch in changes.removedWatches {
            try queues.remove(.ping, of: watch.rawValue)
            try db.run("DELETE FROM watch WHERE serial = ?", [watch.rawValue])
        }
        // The rows are written in one order, so that transactions of several writers do not deadlock.
        for (app, usage) in changes.usage.sorted(by: { $0.key.rawValue < $1.key.rawValue }) { try write(usage, of: app) }
        db.count(changes.dropped, of: Self.dropped)
        return watch
    }

    private static let dropped = ServerMetric.disconnectCallbacks.counter("crowded_out")

    // MARK: Work

    private func write(_ end: WatchChanges.LeaseEnd) throws {
        switch end.work {
        case .stays: try queues.release(end.end.lease.work)
        case .due(let moment): try queues.release(end.end.lease.work, dueAt: moment, at: end.end.at)
        case .removed: break
        }
        try queues.note(end.end)
    }

    private func write(_ ping: WatchChanges.PingWork, of watch: Watch, _ serial: WatchSerial, at now: Timestamp) throws {
        func work(_ peer: String, _ dueAt: Timestamp) -> WorkQueues.NewWork {
            WorkQueues.NewWork(
                kind: .ping, subject: serial.rawValue, app: watch.app.rawValue, device: watch.device.rawValue, peer: peer,
                dueAt: dueAt)
        }
        switch ping {
        case .none: break
        case .added(let peer, let dueAt): try queues.add(work(peer, dueAt), at: now)
        case .moved(let peer, let dueAt): try queues.move(work(peer, dueAt), at: now)
        case .removed: try queues.remove(.ping, of: serial.rawValue)
        }
    }

    // MARK: Watches

    private func write(_ put: WatchChanges.Put) throws -> WatchSerial {
        let serial: WatchSerial
        if put.isNew {
            serial = try insert(put.watch, callbackID: put.callbackID)
        } else {
            serial = put.watch.serial
            try update(put.watch)
        }
        try write(put.ping, of: put.watch, serial, at: put.at)
        return serial
    }

    private func insert(_ watch: Watch, callbackID: String) throws -> WatchSerial {
        let serial = try db.inserted(
            """
            INSERT INTO watch (channel, device, app, revision, ping_address, ping_interval, disconnect_address, callback_id,
                secret, token, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING serial
            """,
            [
                watch.channel.rawValue, watch.device.rawValue, watch.app.rawValue, watch.revision, watch.ping?.address.text,
                watch.ping?.intervalSeconds, watch.disconnectAddress?.text, callbackID, Data(watch.sealed.secret),
                Data(watch.sealed.token), watch.createdAt.milliseconds,
            ])
        return WatchSerial(serial)
    }

    private func update(_ watch: Watch) throws {
        try db.run(
            """
            UPDATE watch SET revision = ?, ping_address = ?, ping_interval = ?, disconnect_address = ?, secret = ?, token = ?,
                told = ?, failures = ?, last_at = ?, last_code = ?, last_detail = ?
            WHERE serial = ?
            """,
            [
                watch.revision, watch.ping?.address.text, watch.ping?.intervalSeconds, watch.disconnectAddress?.text,
                Data(watch.sealed.secret), Data(watch.sealed.token), watch.machine.notified?.rawValue,
                watch.machine.failures,
                watch.lastPing?.at.milliseconds, watch.lastPing?.failure?.rawValue, watch.lastPing?.detail,
                watch.serial.rawValue,
            ])
    }

    private func write(_ state: WatchChanges.State) throws {
        let (notified, failures) = (state.machine.notified?.rawValue, state.machine.failures)
        guard let last = state.lastPing else {
            try db.run(
                "UPDATE watch SET revision = ?, told = ?, failures = ? WHERE serial = ?",
                [state.revision, notified, failures, state.watch.rawValue])
            return
        }
        try db.run(
            """
            UPDATE watch SET revision = ?, told = ?, failures = ?, last_at = ?, last_code = ?, last_detail = ?
            WHERE serial = ?
            """,
            [
                state.revision, notified, failures, last.at.milliseconds, last.failure?.rawValue, last.detail,
                state.watch.rawValue,
            ])
    }

    // MARK: Callbacks

    private func insert(_ callback: WatchChanges.NewCallback) throws {
        let serial = try db.inserted(
            """
            INSERT INTO disconnect_callback (channel, device, app, address, webhook_id, secret, token, reason, ended_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING serial
            """,
            [
                callback.channel.rawValue, callback.device.rawValue, callback.app.rawValue, callback.address.text,
                callback.webhookID, Data(callback.sealed.secret), Data(callback.sealed.token), callback.reason.rawValue,
                callback.endedAt.milliseconds,
            ])
        try queues.add(
            WorkQueues.NewWork(
                kind: .callback, subject: serial, app: callback.app.rawValue, device: callback.device.rawValue,
                peer: callback.address.peer, dueAt: callback.endedAt),
            at: callback.endedAt)
    }

    // MARK: Usage

    private func write(_ usage: WatchChanges.Usage, of app: AppSerial) throws {
        let counters = CounterTable(db)
        func changes(_ added: WatchUsage) -> [CounterTable.Change] {
            [(.watches, added.watches), (.callbacks, added.callbacks)]
        }
        switch usage {
        case .added(let added): try counters.add(changes(added), to: app)
        case .emptied(let added): try counters.empty(changes(added), of: app)
        }
    }
}
