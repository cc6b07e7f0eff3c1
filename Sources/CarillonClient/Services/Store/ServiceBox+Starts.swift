import GRDB
import Logging

extension ServiceBox {
    /// Takes back the start of a handler that did not end with the process, when its turn comes. Does nothing for a request that has its reply.
    func scheduleEnd(of event: StoredServiceEvent, logger: Logger) {
        let (number, starts) = (event.number, event.starts)
        store.schedule { [store] db in
            do throws(PushError) {
                try store.transaction(reachingDisk: false, in: db) {
                    try db.run(
                        "UPDATE service_event SET starts = ? WHERE number = ? AND starts = ?", [starts, number, starts + 1])
                }
            } catch {
                logger.warning("cannot store that a request was not handled", metadata: ["reason": "\(error.message)"])
            }
        }
    }
}
