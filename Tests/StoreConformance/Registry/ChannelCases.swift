import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let channels: [StoreCase] = [
        StoreCase("a channel is open once, as it was opened, until it is closed", channelIsOpenOnce),
        StoreCase(
            "a device has a limited number of channels, and a removed one has none", channelsAreLimited),
        StoreCase("channels of one name belong each to its device", channelsOfOneName),
    ]
}

private func channelIsOpenOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    let id = ChannelID(Bytes16(high: 7, low: 3))
    let opened = try await store.openChannel(
        id, device: device, name: "orders", vapidKey: [4, 5], wake: nil, limit: 3, at: start)
    guard case .opened(let channel) = opened else { throw StoreFixture.Missing() }
    #expect(channel.name == "orders" && channel.vapidKey == [4, 5] && channel.device == device)
    #expect(
        try await store.openChannel(id, device: device, name: nil, vapidKey: [6], wake: .alert, limit: 3, at: start)
            == .alreadyOpen(channel))
    #expect(try await store.channel(channel.serial) == channel)
    #expect(try await store.channel(id, device: device) == channel)
    #expect(try await store.channels(device: device) == [fixture.first, fixture.second, channel])
    #expect(try await store.closeChannel(id, device: device, at: start) == channel.serial)
    #expect(try await store.closeChannel(id, device: device, at: start) == nil)
    #expect(try await store.channel(channel.serial) == nil)
    #expect(try await store.channel(id, device: device) == nil)
    #expect(try await store.channels(device: device) == [fixture.first, fixture.second])
}

private func channelsAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    func open(_ number: UInt64) async throws -> OpenChannelResult {
        try await store.openChannel(
            ChannelID(Bytes16(high: 7, low: number)), device: device, name: nil, vapidKey: nil, wake: nil, limit: 3,
            at: start)
    }
    guard case .opened = try await open(3) else { throw StoreFixture.Missing() }
    #expect(try await open(4) == .tooMany)
    guard case .alreadyOpen = try await open(3) else { throw StoreFixture.Missing() }
    _ = try await store.closeChannel(fixture.first.id, device: device, at: start)
    guard case .opened = try await open(4) else { throw StoreFixture.Missing() }
    _ = try await store.deleteDevice(device, at: start)
    #expect(try await open(5) == .deviceGone)
    #expect(try await store.channels(device: device).isEmpty)
}

private func channelsOfOneName(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let new = NewDevice(DeviceID(Bytes16(high: 1, low: 2)), app: try StoreFixture.appID)
    let other = try #require(try await fixture.insert(new, secret: [2]))
    let channel = try await StoreFixture.open(1, of: other, in: fixture.store)
    #expect(channel.serial != fixture.first.serial)
    #expect(try await fixture.store.channel(channel.id, device: other.serial) == channel)
    _ = try await fixture.store.closeChannel(channel.id, device: other.serial, at: start)
    #expect(try await fixture.store.channel(fixture.first.serial) == fixture.first)
}
