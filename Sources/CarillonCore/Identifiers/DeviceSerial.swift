/// The number of a device in the store. A number is never used again.
///
///     0 │ counter, 53 bits │ shard, 10 bits
///
/// The counter begins with 2^30. Devices of earlier versions have smaller numbers, whose shard is a hash of the number.
package struct DeviceSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
