import CarillonCore
import CarillonWire
import Testing

struct QuotaTests {
    @Test func `each key has its quota, and gets it back`() {
        let shares = Quota<Int>(limit: 2, of: "test")
        #expect(shares.take(1) && shares.take(1) && shares.take(2))
        #expect(!shares.take(1))
        #expect(shares.count(of: 1) == 2)
        shares.release(1)
        #expect(shares.take(1) && !shares.take(1))
        for _ in 0..<4 { shares.release(2) }
        #expect(shares.count(of: 2) == 0)
        #expect(shares.take(2) && shares.take(2) && !shares.take(2))
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.9.0.1", true), ("::1", true), ("::ffff:127.0.0.1", true), ("128.0.0.1", false),
        ("192.168.0.1", false), ("::2", false), ("fe80::1", false),
    ])
    func `an address of this machine is known`(text: String, isLoopback: Bool) throws {
        #expect(try #require(NetworkAddress(text)).isLoopback == isLoopback)
    }

    @Test func `a network of IPv6 has one owner`() throws {
        let some = try #require(NetworkAddress("2001:db8:1:2:3::4"))
        #expect(some.owner == NetworkAddress("2001:db8:1:2:ffff::1")?.owner)
        #expect(some.owner != NetworkAddress("2001:db8:1:3::4")?.owner)
    }

    @Test func `an address of IPv4 is its own owner, also where it is written as IPv6`() throws {
        let mapped = try #require(NetworkAddress("::ffff:203.0.113.9"))
        #expect(mapped.owner == NetworkAddress("203.0.113.9"))
        #expect(mapped.owner != NetworkAddress("::ffff:203.0.113.10")?.owner)
        #expect(NetworkAddress("203.0.113.9")?.owner == NetworkAddress("203.0.113.9"))
    }

    @Test func `units are taken and returned together`() {
        let shares = Quota<Int>(limit: 10, of: "test")
        #expect(shares.take(1, 6) && !shares.take(1, 5) && shares.take(1, 4))
        shares.release(1, 4)
        #expect(shares.count(of: 1) == 6)
        shares.release(1, 60)
        #expect(shares.count(of: 1) == 0)
    }
}

struct FrameMeterTests {
    private let rate = Rate(perSecond: 1000, burst: 10)

    @Test func `a burst is free, and units beyond it wait for the time that they need`() {
        var meter = FrameMeter()
        #expect(meter.count(9, of: rate, at: 0) == nil)
        #expect(meter.count(1, of: rate, at: 0) != nil)
        #expect(meter.count(5, of: rate, at: 0) == 5_000_000)
        #expect(meter.count(1, of: rate, at: 7_000_000) == nil)
        #expect(meter.count(5, of: rate, at: 7_000_000) == 4_000_000)
    }

    @Test func `a pause restores the burst, and no more than that`() {
        var meter = FrameMeter()
        _ = meter.count(100, of: rate, at: 0)
        let later: Int64 = 60_000_000_000
        #expect(meter.count(9, of: rate, at: later) == nil)
        #expect(meter.count(2, of: rate, at: later) == 1_000_000)
    }
}
