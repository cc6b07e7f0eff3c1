/// A feature whose work consists of outgoing calls.
package protocol WorkUser: Sendable {
    /// The stored facts that the work needs.
    associatedtype Subject: Equatable & Sendable
    associatedtype Job: Sendable

    /// Leases work. Items that cannot be leased any more are left out.
    func lease(_ work: [DueWork], at now: Timestamp, until end: Timestamp) async throws -> LeasedItems<Subject>
    /// Returns the call for an item that was leased.
    func job(for item: LeasedItem<Subject>) -> WorkJob<Job>
    /// Stores the result, in one transaction with the end of the lease.
    func ended(_ subject: Subject, _ result: CallResult, _ end: WorkEnd) async throws
    /// The server did no work for a while. Spreads the work that became due meanwhile, so that it is not done all at once.
    func beganAfterPause(at now: Timestamp) async throws
}

package enum WorkJob<Job: Sendable>: Sendable {
    case possible(Job)
    /// The work can never be done, because data that it needs does not exist any more.
    case impossible(reason: String)
}
