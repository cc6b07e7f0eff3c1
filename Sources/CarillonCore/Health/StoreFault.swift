/// The reason why a store, or another home that the work needs, could not do its work. Nothing was changed, except after
/// ``Kind/outcomeUnknown``.
package struct StoreFault: Error, Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        /// The disk, or the space allotted, is full.
        case full
        /// The stored data cannot be read; another try does not help.
        case damaged
        /// The incarnation of the home that wrote was removed from the store; another home may have its shards.
        case fenced
        /// Another home cannot be reached, or what the work concerns moves to another home. Nothing was done.
        case unreachable
        /// Another home did not answer, and can have done the work; or a change is stored, and another home was not informed of it.
        case outcomeUnknown
        /// Any other fault.
        case unavailable
    }

    package var kind: Kind
    /// Whether the fault is one of a home, and not of the store.
    package var isOfHome: Bool { kind == .unreachable || kind == .outcomeUnknown }
    /// For the operator's log.
    package var message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
