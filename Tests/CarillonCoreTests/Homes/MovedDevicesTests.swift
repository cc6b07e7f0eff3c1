import CarillonCore
import CarillonWire
import Testing

/// The devices whose names lead to another shard.
struct MovedDevicesTests {
    private let other = Shard(number: 900)

    /// A device whose id leads to the shard with this number.
    private func device(_ number: UInt64) -> DeviceID { DeviceID(Bytes16(high: 1, low: number)) }

    @Test(arguments: [true, false])
    func `the devices that were noted last are remembered, and no more than twice the capacity`(byName: Bool) {
        let moved = MovedDevices(capacity: 4)
        for number in UInt64(0)..<100 {
            if byName {
                moved.note(.id(device(number), credential: SecretHash(of: [1])), in: other)
            } else {
                moved.note(device(number), in: other)
            }
        }
        let known = (UInt64(0)..<100).reversed().filter { moved.shard(of: device($0)) == other }
        #expect(known.count <= 8 && known.prefix(4) == [99, 98, 97, 96])
    }

    @Test func `a device that is in the shard of its name is not kept`() {
        let moved = MovedDevices(capacity: 1)
        let id = device(5)
        moved.note(id, in: other)
        #expect(moved.shard(of: id) == other)
        moved.note(id, in: Shard(number: 5))
        #expect(moved.shard(of: id) == Shard(number: 5))
        let name = DeviceName.credential(SecretHash(of: [1]))
        moved.note(name, in: Shard(of: name))
        #expect(moved.shard(of: name) == Shard(of: name))
    }
}
