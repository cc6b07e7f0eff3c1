/// Who owes work with the outside, and knows what it is.
package protocol WorkUser: Sendable {
    /// The stored facts that the work needs.
    associatedtype Subject: Equatable & Sendable
    associatedtype Job: Sendable

    /// Leases work. Items that cannot be leased any more are left out.
    func lease(_ work: [DueWork], at now: Timestamp, until end: Timestamp) async throws -> LeasedItems<Subject>
    /// What is to be done of an item that was leased.
    func job(for item: LeasedItem<Subject>) -> WorkJob<Job>
    /// Writes down what became of it, in one transaction with the end of its lease.
    func ended(_ subject: Subject, _ result: CallResult, _ end: WorkEnd) async throws
    /// Nobody did anything for a while: what became due meanwhile is not to be done all at once.
    func beganAfterPause(at now: Timestamp) async throws
}

package enum WorkJob<Job: Sendable>: Sendable {
    case possible(Job)
    /// It can never be done, as what it needs is gone.
    case impossible(reason: String)
}
