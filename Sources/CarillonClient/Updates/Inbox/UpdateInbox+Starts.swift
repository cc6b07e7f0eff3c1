import GRDB
import Logging

/// The starts of the app's code for an update. A start must survive the end of the process, but not a power failure.
extension UpdateInbox {
    /// Stores that the app's code is started for an update. Returns false if the update was withdrawn or finished.
    @discardableResult
    func started(_ update: WaitingUpdate) async throws(PushError) -> Bool {
        try await store.write(reachingDisk: false) { db in
            try db.execute(
                sql: "UPDATE update_inbox SET starts = ? WHERE number = ? AND id = ? AND entry = ?",
                arguments: [update.starts + 1, update.number, update.key.update, update.key.entry])
            return db.changesCount > 0
        }
    }

    /// Removes a start that did not end with the process. Does nothing if it was removed before, or the update is finished.
    func ended(_ update: WaitingUpdate) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in try Self.removeStart(of: update, db) }
    }

    /// Schedules the same change, for code that was cancelled and has not ended yet.
    func scheduleEnd(of update: WaitingUpdate, logger: Logger) {
        store.scheduleWrite(orLog: "cannot store that an update was cancelled", logger) { db in
            try Self.removeStart(of: update, db)
        }
    }

    // MARK: Maintenance

    /// Stores the starts of the app's content for the present maintenance.
    func setMaintenanceStarts(_ starts: Int) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.execute(sql: "UPDATE maintenance SET starts = ?", arguments: [starts])
        }
    }

    /// Schedules the same change, for code that was cancelled and has not ended yet.
    func scheduleMaintenanceStarts(_ starts: Int, logger: Logger) {
        store.scheduleWrite(orLog: "cannot store that a maintenance was cancelled", logger) { db in
            try db.execute(sql: "UPDATE maintenance SET starts = ?", arguments: [starts])
        }
    }

    private static func removeStart(of update: WaitingUpdate, _ db: Database) throws {
        try db.execute(
            sql: "UPDATE update_inbox SET starts = ? WHERE number = ? AND id = ? AND entry = ? AND starts = ?",
            arguments: [update.starts, update.number, update.key.update, update.key.entry, update.starts + 1])
    }
}
