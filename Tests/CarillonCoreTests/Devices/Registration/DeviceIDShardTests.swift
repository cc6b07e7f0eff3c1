import CarillonCore
import CarillonWire
import Testing

/// The ids of new devices.
struct DeviceIDShardTests {
    @Test(arguments: [0, 5, 1023] as [UInt16])
    func `an id has the shard in its last 10 bits, and random bits before`(number: UInt16) {
        let ones = DeviceID(random: RandomSource { .max }, in: Shard(number: number))
        #expect(ones.value == Bytes16(high: .max, low: UInt64.max << 10 | UInt64(number)))
        let zeros = DeviceID(random: RandomSource { 0 }, in: Shard(number: number))
        #expect(zeros.value == Bytes16(high: 0, low: UInt64(number)))
    }

    @Test func `an id without a required shard is completely random`() {
        #expect(DeviceID(random: RandomSource { .max }, in: nil).value == Bytes16(high: .max, low: .max))
        #expect(DeviceID(random: RandomSource { 0 }, in: nil).value == Bytes16(high: 0, low: 0))
    }
}
