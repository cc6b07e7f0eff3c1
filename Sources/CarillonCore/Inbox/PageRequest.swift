/// The part of an inbox that is read: the envelopes after a position, up to a number of envelopes and of bytes.
package struct PageRequest: Equatable, Sendable {
    package var after: Int64
    package var limit: Int
    package var bytes: Int

    package init(after: Int64, limit: Int, bytes: Int) {
        self.after = after
        self.limit = limit
        self.bytes = bytes
    }

    /// A read of no envelopes.
    package static let nothing = PageRequest(after: 0, limit: 0, bytes: 1)
}
