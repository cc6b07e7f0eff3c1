/// A set of devices that share one home.
package struct Shard: Hashable, Sendable {
    package let number: UInt16

    package init(number: UInt16) { self.number = number }

    /// How many there are, as a power of two.
    static let bits: Int64 = 10

    /// Devices that were registered one after the other are in different shards.
    package init(of device: DeviceSerial) {
        let hash = UInt64(bitPattern: device.rawValue) &* 0x9E37_79B9_7F4A_7C15
        number = UInt16(hash >> (64 - Self.bits))
    }
}
