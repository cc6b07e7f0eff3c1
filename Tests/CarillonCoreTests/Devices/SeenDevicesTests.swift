import Testing

@testable import CarillonCore

struct SeenDevicesTests {
    @Test func `each device is marked once, and one that does not fit is marked at its next connection`() {
        let seen = SeenDevices(time: TimeSource { Sample.now })
        for _ in 0..<2 { for serial in Int64(1)...120_000 { seen.saw(DeviceSerial(serial)) } }
        seen.saw(DeviceSerial(1), isAnonymous: false)
        let (taken, registered) = seen.take()
        #expect(registered == [DeviceSerial(1)])
        #expect(taken.count == 99_999)
        #expect(Set(taken).count == taken.count)
        #expect(seen.take().anonymous.isEmpty && seen.take().registered.isEmpty)
    }

    @Test func `the devices of a shard are taken, and the others stay`() {
        let seen = SeenDevices(time: TimeSource { Sample.now })
        let (own, other) = (DeviceSerial(Shard.firstWithShard + 7), DeviceSerial(Shard.firstWithShard + 8))
        for device in [own, other] {
            seen.saw(device)
            seen.came(device)
        }
        #expect(seen.take(in: Shard(number: 7)).anonymous == [own])
        #expect(seen.takeConnected(in: Shard(number: 7)) == [own])
        #expect(seen.take(in: Shard(number: 7)).anonymous.isEmpty)
        #expect(seen.take().anonymous == [other] && seen.takeConnected() == [other])
    }

    @Test func `a connected device is remembered once, up to a limit`() {
        let seen = SeenDevices(time: TimeSource { Sample.now })
        for _ in 0..<2 { for serial in Int64(1)...120_000 { seen.came(DeviceSerial(serial)) } }
        #expect(seen.takeConnected().count == 100_000)
        #expect(seen.takeConnected().isEmpty)
    }
}
