/// The store's number for a channel; never used twice, so that a token of a closed channel stays dead even when the
/// device opens a channel of the same name again.
package struct ChannelSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
