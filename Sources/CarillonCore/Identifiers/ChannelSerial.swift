/// The number of a channel in the store. A number is never used again, so that the token of a closed channel stays invalid
/// if the device opens a channel of the same name again.
package struct ChannelSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
