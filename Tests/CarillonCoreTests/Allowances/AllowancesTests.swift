import CarillonCore
import CarillonWire
import Synchronization
import Testing

struct AllowancesTests {
    private final class Clock: Sendable {
        let now = Atomic<Int64>(0)
        var ticks: TickSource { TickSource { self.now.load(ordering: .relaxed) } }
    }

    private let clock = Clock()

    private func allowances(_ change: (inout Allowances.Settings) -> Void) -> Allowances {
        var settings = Allowances.Settings()
        change(&settings)
        return Allowances(settings: settings, ticks: clock.ticks)
    }

    /// Sends a message, and returns the refusal of it.
    private func send(to channel: Int64, device: Int64 = 1, app: Int64 = 1, _ allowances: Allowances) -> Refusal? {
        refusal { () throws(Refusal) in
            try allowances.takeMessage(to: ChannelSerial(channel), of: DeviceSerial(device), in: AppSerial(app))
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

    @Test func `a channel's allowance is its own, and a device's is shared by its channels`() {
        let allowances = allowances {
            $0.channelMessages = Rate(perSecond: 1, burst: 2)
            $0.deviceMessages = Rate(perSecond: 1, burst: 3)
        }
        for _ in 0..<2 { #expect(send(to: 1, allowances) == nil) }
        let first = send(to: 1, allowances)
        #expect(first?.code == .rateLimited)
        #expect(first?.retryAfterSeconds == 2)
        #expect(send(to: 2, allowances) == nil)
        #expect(send(to: 2, allowances)?.detail.contains("device") == true)
        #expect(send(to: 3, device: 2, allowances) == nil)
        clock.now.store(5_000_000_000, ordering: .relaxed)
        #expect(send(to: 1, allowances) == nil)
    }

    @Test func `an app's allowance is shared by its devices, and leaves other apps alone`() {
        let allowances = allowances { $0.appMessages = Rate(perSecond: 1, burst: 2) }
        for device in 1...2 {
            #expect(send(to: Int64(device), device: Int64(device), allowances) == nil)
        }
        #expect(send(to: 3, device: 3, allowances)?.code == .rateLimited)
        #expect(send(to: 4, device: 4, app: 2, allowances) == nil)
    }

    @Test func `devices and channels count against their address, and a network of IPv6 is one`() throws {
        let allowances = allowances { $0.addressRegistrations = Rate(perSecond: 1, burst: 2) }
        let first = try #require(NetworkAddress("2001:db8::1"))
        let neighbour = try #require(NetworkAddress("2001:db8::2:2"))
        let other = try #require(NetworkAddress("2001:db8:0:1::1"))
        #expect(refusal { () throws(Refusal) in try allowances.takeDevice(from: first) } == nil)
        #expect(refusal { () throws(Refusal) in try allowances.takeRegistration(of: nil, from: neighbour) } == nil)
        #expect(refusal { () throws(Refusal) in try allowances.takeDevice(from: first) }?.code == .rateLimited)
        #expect(refusal { () throws(Refusal) in try allowances.takeDevice(from: other) } == nil)
        #expect(refusal { () throws(Refusal) in try allowances.takeDevice(from: nil) } == nil)
    }

    @Test func `a device that opens and closes channels without end is slowed down`() {
        let allowances = allowances { $0.deviceRegistrations = Rate(perSecond: 1, burst: 2) }
        for _ in 0..<2 {
            #expect(refusal { () throws(Refusal) in try allowances.takeRegistration(of: DeviceSerial(1), from: nil) } == nil)
        }
        #expect(
            refusal { () throws(Refusal) in try allowances.takeRegistration(of: DeviceSerial(1), from: nil) }?.code
                == .rateLimited)
        #expect(refusal { () throws(Refusal) in try allowances.takeRegistration(of: DeviceSerial(2), from: nil) } == nil)
    }

    @Test func `what is off lets everything through`() {
        let allowances = allowances {
            $0.channelMessages = nil
            $0.deviceMessages = nil
            $0.appMessages = nil
        }
        for _ in 0..<50_000 {
            guard send(to: 1, allowances) == nil else {
                Issue.record("refused")
                return
            }
        }
    }
}
