import GRDB

/// The owner of the updates in the inbox, and the results of each owner. Results and finished updates of a former owner stay:
/// after the same user signs in again, a finished update is not processed again.
extension UpdateInbox {
    /// The most owners whose results and finished updates are stored. Beyond that, those of the owner that was used longest ago
    /// are removed.
    static let rememberedOwners = 8

    /// Changes the owner; nil if the inbox has no owner. Updates and the position of the former owner are removed.
    func setOwner(_ owner: UpdateOwner?) async throws(PushError) {
        try await store.write { db in
            let row = try Row.fetchOne(db, sql: "SELECT device, user, profile FROM update_place")
            let present = row.map { UpdateOwner(device: $0["device"], user: $0["user"], profile: $0["profile"]) }
            guard present != owner else {
                try db.execute(sql: "UPDATE update_inbox SET state = 'new' WHERE state NOT IN ('failed', 'absorbed')")
                return
            }
            try db.execute(sql: "DELETE FROM update_inbox; DELETE FROM update_place; DELETE FROM server_time;")
            guard let owner else { return }
            try db.execute(
                sql: "INSERT INTO update_place (id, device, user, profile) VALUES (1, ?, ?, ?)",
                arguments: [owner.device, owner.user, owner.profile])
            try Self.use(owner, db)
        }
    }

    private static func use(_ owner: UpdateOwner, _ db: Database) throws {
        try db.execute(
            sql: """
                INSERT INTO update_owner (device, user, profile, used)
                VALUES (?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM update_owner))
                ON CONFLICT (device, user, profile) DO UPDATE SET used = excluded.used
                """, arguments: [owner.device, owner.user, owner.profile])
        try db.execute(
            sql: """
                DELETE FROM update_owner WHERE number IN
                (SELECT number FROM update_owner ORDER BY used DESC LIMIT -1 OFFSET ?)
                """, arguments: [rememberedOwners])
        try db.execute(
            sql: """
                DELETE FROM update_done WHERE owner NOT IN (SELECT number FROM update_owner);
                DELETE FROM update_result WHERE owner NOT IN (SELECT number FROM update_owner);
                """)
    }

    /// Returns the number of the present owner; nil if the inbox has no owner.
    static func ownerNumber(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(
            db, sql: "SELECT update_owner.number FROM update_owner JOIN update_place USING (device, user, profile)")
    }

    // MARK: Finished updates

    /// Returns the result of an update that the present owner finished; nil if the update is not finished.
    static func result(of key: UpdateKey, _ db: Database) throws -> String? {
        try String.fetchOne(
            db, sql: "SELECT result FROM update_done WHERE owner = ? AND id = ? AND entry = ?",
            arguments: [try ownerNumber(db), key.update, key.entry])
    }

    static func remember(_ result: String, of key: UpdateKey, _ db: Database) throws {
        guard let owner = try ownerNumber(db) else { return }
        let number = try Int64.fetchOne(
            db, sql: "SELECT coalesce(max(number), 0) + 1 FROM update_done WHERE owner = ?", arguments: [owner])
        try db.execute(
            sql: "INSERT INTO update_done (owner, number, id, entry, result) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            arguments: [owner, number, key.update, key.entry, result])
        try db.execute(
            sql: """
                DELETE FROM update_done
                WHERE owner = ? AND number <= (SELECT max(number) FROM update_done WHERE owner = ?) - ?
                """, arguments: [owner, owner, rememberedDone])
    }

    // MARK: Results

    /// Stores the result that is reported to the server, in place of an earlier one. The new row has a new number: a running poll
    /// with the earlier result does not remove it.
    static func storeResult(_ result: String, of key: UpdateKey, _ db: Database) throws {
        guard let owner = try ownerNumber(db) else { return }
        try db.execute(
            sql: "DELETE FROM update_result WHERE owner = ? AND id = ? AND entry = ?",
            arguments: [owner, key.update, key.entry])
        try db.execute(
            sql: "INSERT INTO update_result (owner, id, entry, result) VALUES (?, ?, ?, ?)",
            arguments: [owner, key.update, key.entry, result])
        try db.execute(
            sql: """
                DELETE FROM update_result WHERE owner = ? AND number <=
                (SELECT number FROM update_result WHERE owner = ? ORDER BY number DESC LIMIT 1 OFFSET ?)
                """, arguments: [owner, owner, rememberedDone])
    }
}
