import CarillonCore

/// The home whose work runs in a transaction. ``TransactionGroup`` sets it for each work, because work of several homes can share
/// a transaction.
enum WritingHome {
    /// The node of work that belongs to no home.
    static let none = NodeNumber(0)

    @TaskLocal static var node: NodeNumber = WritingHome.none
}
