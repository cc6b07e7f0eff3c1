import CarillonCore
import CarillonWire
import Synchronization
import TestStores
import Testing

private let start = StoreFixture.start
private let load = DeliveryMachine.Load(after: 0, limit: 2, bytes: 10_000)

extension StoreCase {
    static let arrivals: [StoreCase] = [
        StoreCase(
            "a device that arrives is found by either name, with the first of what waits",
            arrivalIsFoundByEitherName),
        StoreCase("a device that is unknown or deleted does not arrive", unknownDeviceDoesNotArrive),
        StoreCase("what is committed before a device arrives is in its page", arrivalSeesWhatWasCommitted),
    ]
}

private func arrivalIsFoundByEitherName(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for position in Int64(1)...3 { _ = try await fixture.append(fixture.envelope(position, ttl: position)) }
    for name in [DeviceName.id(fixture.device.id), .credential(fixture.device.credentialHash)] {
        let arrival = try await fixture.store.arrival(of: name, load, at: start)
        #expect(arrival?.device == fixture.device)
        #expect(arrival?.envelopes?.map(\.position) == [1, 2])
    }
    var later = load
    later.after = 1
    let name = DeviceName.id(fixture.device.id)
    let rest = try await fixture.store.arrival(of: name, later, at: start.adding(seconds: 2))
    #expect(rest?.envelopes?.map(\.position) == [3])
}

private func unknownDeviceDoesNotArrive(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    _ = try await fixture.append(fixture.envelope(1))
    let unknown = DeviceName.id(DeviceID(Bytes16(high: 3, low: 3)))
    #expect(try await store.arrival(of: unknown, load, at: start) == nil)
    let other = NewDevice(DeviceID(Bytes16(high: 3, low: 4)), app: try StoreFixture.appID)
    let silent = try #require(try await fixture.insert(other, secret: [3, 4]))
    let arrival = try await store.arrival(of: .id(silent.id), load, at: start)
    #expect(arrival == Arrival(device: silent, envelopes: []))
    _ = try await store.deleteDevice(device.serial, at: start)
    #expect(try await store.arrival(of: .id(device.id), load, at: start) == nil)
    _ = try await store.deleteApp(device.appID, at: start)
    #expect(try await store.arrival(of: .id(silent.id), load, at: start) == nil)
}

private func arrivalSeesWhatWasCommitted(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for round in Int64(1)...20 {
        // Commits go on beside it: none that ended before the call may be missing.
        let committed = Mutex<Int64>(0)
        let commits = Task {
            for position in round * 10..<round * 10 + 10 {
                _ = try await fixture.append(fixture.envelope(position))
                committed.withLock { $0 = position }
            }
        }
        var last: Int64 = 0
        while last < round * 10 + 9 {
            last = committed.withLock { $0 }
            let arrival = try await fixture.store.arrival(
                of: .id(fixture.device.id), .init(after: round * 10 - 1, limit: 100, bytes: 100_000), at: start)
            let expected = last >= round * 10 ? Array(round * 10...last) : []
            #expect(arrival?.envelopes?.map(\.position).prefix(expected.count) == expected[...])
        }
        try await commits.value
    }
}
