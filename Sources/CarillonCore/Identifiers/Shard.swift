package import CarillonWire

/// A set of devices that share one home.
package struct Shard: Hashable, Sendable {
    package let number: UInt16

    /// The number of bits of a shard's number.
    static let bits: Int64 = 10
    /// The number of shards.
    package static let count: Int = 1 << Int(bits)

    /// - Parameter number: Less than ``count``.
    package init(number: UInt16) {
        precondition(number < Self.count, "A shard's number is less than 1,024.")
        self.number = number
    }

    /// The first serial number that contains its shard in its last 10 bits. Smaller serial numbers were assigned one after the
    /// other.
    package static let firstWithShard: Int64 = 1 << 40

    /// Returns the shard of a device. Devices that were registered one after the other are in different shards.
    package init(of device: DeviceSerial) {
        number =
            device.rawValue >= Self.firstWithShard
            ? Self.lastBits(of: device.rawValue) : Self.hash(of: UInt64(bitPattern: device.rawValue))
    }

    /// Returns the shard in the last 10 bits of the identifier of a device.
    package init(of device: DeviceID) { number = Self.lastBits(of: Int64(bitPattern: device.value.low)) }

    /// Returns the shard of data that an app has once for all its devices, such as its updates and its audit.
    package init(of app: AppSerial) { number = Self.hash(of: UInt64(bitPattern: app.rawValue)) }

    /// Returns the shard of an item. Names are compared by their bytes.
    package init(of app: AppSerial, item name: String) {
        self.init(hashing: UInt64(bitPattern: app.rawValue), name.utf8)
    }

    package init(of attachment: AttachmentID) { number = Self.hash(of: attachment.value.high ^ attachment.value.low) }

    /// Returns the shard of the device that the position was assigned to.
    package init(of position: Int64) { number = Self.lastBits(of: position) }

    /// Returns the shard for the FNV-1a hash of a value and of bytes.
    init(hashing value: UInt64, _ bytes: some Sequence<UInt8>) {
        let prime: UInt64 = 0x100_0000_01B3
        var hash = (0xCBF2_9CE4_8422_2325 ^ value) &* prime
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* prime }
        number = Self.hash(of: hash)
    }

    /// Makes random values until one is in the right shard.
    ///
    /// - Parameters:
    ///   - isRight: Whether a value is in the right shard.
    ///   - make: Makes a value in a random shard.
    /// - Returns: Nil if none of 20,480 values is. If one shard is right, the probability of nil is 2 in 10^9.
    static func find<Value>(where isRight: (Value) -> Bool, making make: () -> Value) -> Value? {
        for _ in 0..<20 * count {
            let value = make()
            if isRight(value) { return value }
        }
        return nil
    }

    private static func hash(of value: UInt64) -> UInt16 {
        UInt16((value &* 0x9E37_79B9_7F4A_7C15) >> UInt64(64 - bits))
    }

    private static func lastBits(of value: Int64) -> UInt16 { UInt16(value & (1 << bits - 1)) }
}
