package import CarillonWire

extension DeviceID {
    /// Makes the id of a new device. Its last 10 bits are the number of the device's shard, and all other bits are random.
    ///
    /// - Parameter shard: Nil for a random shard.
    package init(random: RandomSource, in shard: Shard?) {
        var generator = random
        var value = Bytes16.random(using: &generator)
        if let shard {
            let mask = UInt64(Shard.count) - 1
            value.low = (value.low & ~mask) | UInt64(shard.number)
        }
        self.init(value)
    }
}
