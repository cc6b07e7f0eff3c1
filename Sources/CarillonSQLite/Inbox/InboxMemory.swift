import CarillonCore
import GRDB

/// What the writing connection remembers of the inboxes.
final class InboxMemory: Sendable {
    let usage = UsageCache()
    let index: InboxIndex
    let due: DueTimes
    let pushes = PushMemory()
    let requests = RequestMemory()
    /// Readers use it, too.
    let confirmations = TokenConfirmations()

    init(settings: StoreSettings, indexCapacity: Int) {
        index = InboxIndex(capacity: indexCapacity)
        due = DueTimes(outcomeSeconds: settings.inbox.outcomeRetentionSeconds)
    }

    /// What was written is taken back, and nothing that is remembered can be relied on.
    func rolledBack(in db: Database) {
        usage.forgetAll()
        due.forgetAll()
        pushes.forgetAll()
        requests.forgetAll()
        do {
            try InboxIndexWriter.read(into: index, from: db)
        } catch {
            index.lose(duringTransaction: db.isInsideTransaction)
        }
    }
}
