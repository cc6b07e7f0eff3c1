import Testing

@testable import CarillonCore

struct SeenDevicesTests {
    @Test func `each is marked once, and what finds no place is left for its next connection`() {
        let seen = SeenDevices()
        for _ in 0..<2 { for serial in Int64(1)...120_000 { seen.saw(DeviceSerial(serial)) } }
        let taken = seen.take()
        #expect(taken.count == 100_000)
        #expect(Set(taken).count == taken.count)
        #expect(seen.take().isEmpty)
    }
}
