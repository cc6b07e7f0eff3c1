import GRDB
import Logging

extension ServiceBox {
    /// Stores that a delegate is called with a result, or that a reader receives it. The start is removed with the result, which
    /// is deleted when it is confirmed.
    func resultStarted(_ id: String) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.run("UPDATE service_result SET starts = starts + 1 WHERE id = ?", [id])
        }
    }

    /// Schedules the removal of the starts of results that were not confirmed.
    func scheduleEnd(ofResults ids: Set<String>, logger: Logger) {
        guard !ids.isEmpty else { return }
        store.scheduleWrite(orLog: "cannot store that a result was not confirmed", logger) { db in
            for id in ids {
                try db.run("UPDATE service_result SET starts = starts - 1 WHERE id = ? AND starts > 0", [id])
            }
        }
    }

    /// Schedules the removal of the start of a handler that did not end with the process. Does nothing for a request that has its
    /// reply.
    func scheduleEnd(of event: StoredServiceEvent, logger: Logger) {
        scheduleEnd(of: event.number, starts: event.starts, logger: logger)
    }

    /// - Parameters:
    ///   - number: The number of the request's event.
    ///   - starts: The starts that ended with the process before.
    func scheduleEnd(of number: Int64, starts: Int, logger: Logger) {
        store.scheduleWrite(orLog: "cannot store that a request was not handled", logger) { db in
            try db.run("UPDATE service_event SET starts = ? WHERE number = ? AND starts = ?", [starts, number, starts + 1])
        }
    }
}
