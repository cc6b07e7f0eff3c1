import CarillonCore
import CarillonWire
import Testing

struct PositionSourceTests {
    private let devices = (Int64(1)...5000).map(DeviceSerial.init)

    @Test func `positions ascend, within an epoch and from one to the next, and contain their shard`() {
        var last: Int64 = 0
        for epoch in [1, 2, 7, 1 << 20] as [Int64] {
            let positions = PositionSource(epoch: epoch)
            for device in devices.prefix(100) {
                let position = positions.next(for: device)
                #expect(position > last)
                #expect(PositionSource.epoch(of: position) == epoch)
                #expect(Shard(of: position) == Shard(of: device))
                last = position
            }
        }
    }

    @Test func `a used up sequence continues in the next epoch`() {
        // The last place of epoch 3 is the one before the first of epoch 4.
        let positions = PositionSource(epoch: 4)
        let first = positions.next(for: devices[0])
        #expect(PositionSource.epoch(of: first - 2 << 10) == 3)
        #expect(PositionSource.epoch(of: first) == 4)
    }

    @Test func `the present epoch follows a sequence that is used up`() {
        let positions = PositionSource(epoch: 3, after: 1 << 29 - 3)
        for epoch in [3, 3, 4, 4] as [Int64] {
            #expect(PositionSource.epoch(of: positions.next(for: devices[0])) == epoch)
            #expect(positions.epoch == epoch)
        }
    }

    @Test func `there is room for every epoch`() {
        let position = PositionSource(epoch: 1 << 24 - 1).next(for: devices[0])
        #expect(position > 0)
        #expect(PositionSource.epoch(of: position) == 1 << 24 - 1)
    }

    @Test func `devices are spread over all shards, evenly`() {
        var counts: [Shard: Int] = [:]
        for device in devices { counts[Shard(of: device), default: 0] += 1 }
        #expect(counts.count == 1024)
        #expect(counts.keys.allSatisfy { $0.number < 1024 })
        #expect(counts.values.max() ?? 0 <= 10)
    }
}
