import CarillonCore
import CarillonWire
import Synchronization
import Testing

struct RateLimitsTests {
    private final class Clock: Sendable {
        let now = Atomic<Int64>(0)
        var ticks: TickSource { TickSource { self.now.load(ordering: .relaxed) } }
    }

    private let clock = Clock()

    private func rateLimits(_ change: (inout RateLimits.Settings) -> Void) -> RateLimits {
        var settings = RateLimits.Settings()
        change(&settings)
        return RateLimits(settings: settings, ticks: clock.ticks)
    }

    /// Sends a message, and returns the refusal of it.
    private func send(to channel: Int64, device: Int64 = 1, app: Int64 = 1, _ rateLimits: RateLimits) -> Refusal? {
        refusal { () throws(Refusal) in
            try rateLimits.takeMessage(to: ChannelSerial(channel), of: DeviceSerial(device), in: AppSerial(app))
        }
    }

    private func refusal(_ work: () throws(Refusal) -> Void) -> Refusal? {
        do {
            try work()
            return nil
        } catch {
            return error
        }
    }

    @Test func `a channel has its own rate limit, and the channels of a device have that of the device`() {
        let rateLimits = rateLimits {
            $0.channelMessages = Rate(perSecond: 1, burst: 2)
            $0.deviceMessages = Rate(perSecond: 1, burst: 3)
        }
        for _ in 0..<2 { #expect(send(to: 1, rateLimits) == nil) }
        let first = send(to: 1, rateLimits)
        #expect(first?.code == .rateLimited)
        #expect(first?.retryAfterSeconds == 2)
        #expect(send(to: 2, rateLimits) == nil)
        #expect(send(to: 2, rateLimits)?.detail.contains("device") == true)
        #expect(send(to: 3, device: 2, rateLimits) == nil)
        clock.now.store(5_000_000_000, ordering: .relaxed)
        #expect(send(to: 1, rateLimits) == nil)
    }

    @Test func `the devices of an app have the rate limit of the app, and other apps are independent`() {
        let rateLimits = rateLimits { $0.appMessages = Rate(perSecond: 1, burst: 2) }
        for device in 1...2 {
            #expect(send(to: Int64(device), device: Int64(device), rateLimits) == nil)
        }
        #expect(send(to: 3, device: 3, rateLimits)?.code == .rateLimited)
        #expect(send(to: 4, device: 4, app: 2, rateLimits) == nil)
    }

    @Test func `devices and channels count against their address, and a network of IPv6 is one`() throws {
        let rateLimits = rateLimits { $0.addressRegistrations = Rate(perSecond: 1, burst: 2) }
        let first = try #require(NetworkAddress("2001:db8::1"))
        let neighbour = try #require(NetworkAddress("2001:db8::2:2"))
        let other = try #require(NetworkAddress("2001:db8:0:1::1"))
        #expect(refusal { () throws(Refusal) in try rateLimits.takeDevice(from: first) } == nil)
        #expect(refusal { () throws(Refusal) in try rateLimits.takeRegistration(of: nil, from: neighbour) } == nil)
        #expect(refusal { () throws(Refusal) in try rateLimits.takeDevice(from: first) }?.code == .rateLimited)
        #expect(refusal { () throws(Refusal) in try rateLimits.takeDevice(from: other) } == nil)
        #expect(refusal { () throws(Refusal) in try rateLimits.takeDevice(from: nil) } == nil)
    }

    @Test func `a device that opens and closes channels without end is slowed down`() {
        let rateLimits = rateLimits { $0.deviceRegistrations = Rate(perSecond: 1, burst: 2) }
        for _ in 0..<2 {
            #expect(refusal { () throws(Refusal) in try rateLimits.takeRegistration(of: DeviceSerial(1), from: nil) } == nil)
        }
        #expect(
            refusal { () throws(Refusal) in try rateLimits.takeRegistration(of: DeviceSerial(1), from: nil) }?.code
                == .rateLimited)
        #expect(refusal { () throws(Refusal) in try rateLimits.takeRegistration(of: DeviceSerial(2), from: nil) } == nil)
    }

    @Test func `a limit that is off admits everything`() {
        let rateLimits = rateLimits {
            $0.channelMessages = nil
            $0.deviceMessages = nil
            $0.appMessages = nil
        }
        for _ in 0..<50_000 {
            guard send(to: 1, rateLimits) == nil else {
                Issue.record("refused")
                return
            }
        }
    }
}
