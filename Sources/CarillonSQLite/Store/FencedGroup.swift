import CarillonCore
import GRDB

/// Runs the writes of one handle in the transactions of the store.
struct FencedGroup: Sendable {
    let transactions: TransactionGroup
    /// The home of the handle; nil for writes that belong to no home.
    let fence: HomeFence?

    /// Runs the work in a transaction that may be shared, and returns when the transaction is on disk.
    ///
    /// - Throws: ``StoreFault``, of the kind `fenced` if the incarnation of the home does not exist.
    func run<Value: Sendable>(_ work: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await transactions.run(by: fence, work)
    }
}
