import CarillonCore
import CarillonWire
import Testing

@testable import CarillonServer

/// Channels of devices whose shards move between two homes.
@Suite(.timeLimit(.minutes(5)))
struct ChannelsOfTwoHomesTests {
    /// Calls wait until the test opens or moves the shard, also on a busy machine.
    private let endless = Scheduler { _, _ in }
    private let channel = ChannelID("6f3f1e0e-1111-4222-8333-444455556666")

    /// Begins work while the shard of a device is closed.
    ///
    /// - Parameter isGiven: Whether the home then moves the shard to the other home. Otherwise, the shard stays.
    /// - Returns: The work, after the shard was moved or opened.
    private func begin<Result: Sendable>(
        _ device: Device, of home: HomeRuntime, isGiven: Bool, _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Task<Result, any Error> {
        let (gate, shard) = (try #require(home.gate), Shard(of: device.serial))
        #expect(await gate.close(shard, atMost: .seconds(10)))
        let task = Task { try await work() }
        // Work that does not wait is done by then.
        try await Task.sleep(for: .milliseconds(50))
        if isGiven { gate.remove(shard) } else { gate.reopen(shard) }
        return task
    }

    @Test func `a notification for several devices waits for a device that moves`() async throws {
        let homes = try await TwoHomes(scheduler: endless)
        let (device, domain) = (try await homes.device(at: 0), homes.domains[0])
        let token = try await domain.channels.register(
            try #require(channel), device: device.serial, name: nil, vapidKey: nil
        ).token
        let published = try await begin(device, of: domain.runtime, isGiven: false) {
            try await domain.publishAtHome(token, [1], ttlSeconds: 600)
        }
        try await published.value
        #expect(try await homes.waiting(for: device).count == 1)
    }

    @Test(arguments: [false, true])
    func `a socket opens no channel at a home whose device moves`(isGiven: Bool) async throws {
        let homes = try await TwoHomes(scheduler: endless)
        let (device, domain) = (try await homes.device(at: 0), homes.domains[0])
        let question = OpenChannel(
            owner: .device(device.serial), id: try #require(channel), name: nil, vapidKey: nil, wake: nil, address: nil)
        let opened = try await begin(device, of: domain.runtime, isGiven: isGiven) { try await domain.open(question) }
        if isGiven {
            await #expect(throws: StoreFault.self) { _ = try await opened.value }
        } else {
            #expect(try await opened.value.device == device.serial)
        }
        #expect(try await domain.channels.list(device: device.serial).count == (isGiven ? 0 : 1))
    }
}
