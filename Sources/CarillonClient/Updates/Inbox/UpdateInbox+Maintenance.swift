import CarillonWire
import GRDB

/// The maintenance that was announced, and the server's clock.
extension UpdateInbox {
    struct Maintenance: Equatable, Sendable {
        var beginsAt: Int64
        var endsAt: Int64?
        /// The mode before the maintenance; nil if the user has chosen a mode since.
        var modeBefore: SyncMode?
        var hasBegun = false
        /// The starts of the app's content for the maintenance that ended with the process.
        var starts = 0
    }

    func maintenance() async throws(PushError) -> Maintenance? {
        try await store.write { db in
            try Row.fetchOne(db, sql: "SELECT * FROM maintenance").map { row in
                Maintenance(
                    beginsAt: row["begins_at"], endsAt: row["ends_at"],
                    modeBefore: (row["mode"] as String?).flatMap(SyncMode.init), hasBegun: row["has_begun"],
                    starts: row["starts"])
            }
        }
    }

    /// Stores the maintenance; nil removes it. Returns false, and stores nothing, if the update that announces it was withdrawn.
    ///
    /// - Parameter announcement: The update that announces the maintenance; nil if the maintenance was announced before.
    @discardableResult
    func setMaintenance(
        _ maintenance: Maintenance?, announcedBy announcement: WaitingUpdate? = nil
    ) async throws(PushError) -> Bool {
        try await store.write { db in
            if let announcement, try !Self.contains(announcement, db) { return false }
            try db.execute(sql: "DELETE FROM maintenance")
            guard let maintenance else { return true }
            try db.execute(
                sql: "INSERT INTO maintenance (id, begins_at, ends_at, mode, has_begun, starts) VALUES (1, ?, ?, ?, ?, ?)",
                arguments: [
                    maintenance.beginsAt, maintenance.endsAt, maintenance.modeBefore?.rawValue, maintenance.hasBegun,
                    maintenance.starts,
                ])
            return true
        }
    }

    /// Stores the time of the server's clock from a frame that announces a maintenance.
    func noteTime(of frame: UpdateFrame, _ db: Database) throws {
        guard frame.startsIn != nil || frame.endsIn != nil, let (from, until) = frame.maintenance,
            let time = ServerTime([(from, frame.startsIn), (until, frame.endsIn)], on: clock)
        else { return }
        try db.execute(
            sql: """
                INSERT OR REPLACE INTO server_time (id, server, wall, uptime, boot) VALUES (1, ?, ?, ?, ?)
                """, arguments: [time.server, time.wall, time.uptime.milliseconds, time.uptime.boot])
    }

    /// The stored time of the server's clock; nil before the server announced a maintenance.
    func serverTime() async throws(PushError) -> ServerTime? {
        try await store.write { db in
            try Row.fetchOne(db, sql: "SELECT * FROM server_time").map { row in
                ServerTime(
                    server: row["server"], wall: row["wall"],
                    uptime: DeviceClock.Uptime(milliseconds: row["uptime"], boot: row["boot"]))
            }
        }
    }

    /// Finishes the announcements of maintenance that arrived before a status, in any state. Returns their keys.
    ///
    /// - Parameter code: The reason that is reported to the server.
    func endMaintenance(before update: WaitingUpdate, code: String) async throws(PushError) -> [UpdateKey] {
        try await store.write { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT * FROM update_inbox WHERE number < ? ORDER BY number", arguments: [update.number])
            var ended: [UpdateKey] = []
            for earlier in rows.compactMap(Self.waiting) {
                guard case .status(.maintenance) = earlier.payload else { continue }
                try Self.finish(earlier, .done(code: code), db)
                ended.append(earlier.key)
            }
            return ended
        }
    }
}
