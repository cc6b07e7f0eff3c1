/// The reason why a store, or another home that the operation needs, could not complete the operation. Nothing was changed,
/// except after ``Kind/outcomeUnknown``.
package struct StoreFault: Error, Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        /// The disk, or the allotted space, is full.
        case full
        /// The stored data cannot be read. A retry does not help.
        case damaged
        /// The incarnation of the home that wrote was removed from the store; another home may have its shards.
        case fenced
        /// Another home cannot be reached, or the data of the operation moves to another home. Nothing was changed.
        case unreachable
        /// Another home did not answer, and can have completed the operation; or a change is stored, and another home was not
        /// notified of it.
        case outcomeUnknown
        /// Any other fault.
        case unavailable
    }

    package var kind: Kind
    /// Whether the fault is one of a home, not of the store.
    package var isOfHome: Bool { kind == .unreachable || kind == .outcomeUnknown }
    /// For the operator's log.
    package var message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
