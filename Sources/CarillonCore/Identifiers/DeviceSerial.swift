/// The number of a device in the store. A number is never used again.
package struct DeviceSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
