/// The reason why a store could not do its work. Nothing was changed.
package struct StoreFault: Error, Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        /// The disk, or the space allotted, is full.
        case full
        /// The stored data cannot be read; another try does not help.
        case damaged
        /// The incarnation of the home that wrote was removed from the store; another home may have its shards.
        case fenced
        /// Any other fault.
        case unavailable
    }

    package var kind: Kind
    /// For the operator's log.
    package var message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
