import CarillonCore
import CarillonWire
import Synchronization
import TestStores
import Testing

private let start = StoreFixture.start
private let load = PageRequest(after: 0, limit: 2, bytes: 10_000)

extension StoreCase {
    static let arrivals: [StoreCase] = [
        StoreCase(
            "a device that arrives is found by either name, with the first of its waiting envelopes",
            arrivalIsFoundByEitherName),
        StoreCase("a device that is unknown or deleted does not arrive", unknownDeviceDoesNotArrive),
        StoreCase("a device arrives with its own credential only", arrivalNeedsTheCredential),
        StoreCase("an envelope that is committed before a device arrives is in its page", arrivalSeesWhatWasCommitted),
    ]
}

private func byID(_ device: Device) -> DeviceName { .id(device.id, credential: device.credentialHash) }

private func arrivalIsFoundByEitherName(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for position in Int64(1)...3 { _ = try await fixture.append(fixture.envelope(position, ttl: position)) }
    for name in [byID(fixture.device), .credential(fixture.device.credentialHash)] {
        let arrival = try await fixture.store.arrival(of: name, load, at: start)
        #expect(arrival?.device == fixture.device)
        #expect(arrival?.envelopes?.map(\.position) == [1, 2])
    }
    var later = load
    later.after = 1
    let rest = try await fixture.store.arrival(of: byID(fixture.device), later, at: start.adding(seconds: 2))
    #expect(rest?.envelopes?.map(\.position) == [3])
    let unread = PageRequest(after: 0, limit: 0, bytes: 10_000)
    let bare = try await fixture.store.arrival(of: byID(fixture.device), unread, at: start)
    #expect(bare == Arrival(device: fixture.device, envelopes: []))
}

private func unknownDeviceDoesNotArrive(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    _ = try await fixture.append(fixture.envelope(1))
    let unknown = DeviceName.id(DeviceID(Bytes16(high: 3, low: 3)), credential: SecretHash(of: [3, 3]))
    #expect(try await store.arrival(of: unknown, load, at: start) == nil)
    let other = NewDevice(DeviceID(Bytes16(high: 3, low: 4)), app: try StoreFixture.appID)
    let silent = try #require(try await fixture.insert(other, secret: [3, 4]))
    let arrival = try await store.arrival(of: byID(silent), load, at: start)
    #expect(arrival == Arrival(device: silent, envelopes: []))
    _ = try await store.deleteDevice(device.serial, at: start)
    #expect(try await store.arrival(of: byID(device), load, at: start) == nil)
    _ = try await store.deleteApp(device.appID, at: start)
    #expect(try await store.arrival(of: byID(silent), load, at: start) == nil)
}

private func arrivalNeedsTheCredential(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    _ = try await fixture.append(fixture.envelope(1))
    let new = NewDevice(DeviceID(Bytes16(high: 3, low: 5)), app: try StoreFixture.appID)
    let other = try #require(try await fixture.insert(new, secret: [3, 5]))
    for hash in [other.credentialHash, SecretHash(of: [3, 6])] {
        #expect(try await store.arrival(of: .id(device.id, credential: hash), load, at: start) == nil)
        #expect(try await store.poll(of: .id(device.id, credential: hash), at: start) == nil)
    }
    let renewed = SecretHash(of: [3, 7])
    #expect(try await store.renewCredential(of: device.serial, to: renewed))
    #expect(try await store.arrival(of: byID(device), load, at: start) == nil)
    #expect(try await store.poll(of: byID(device), at: start) == nil)
    let arrival = try await store.arrival(of: .id(device.id, credential: renewed), load, at: start)
    #expect(arrival?.device.serial == device.serial && arrival?.envelopes?.map(\.position) == [1])
    #expect(try await store.poll(of: .id(device.id, credential: renewed), at: start)?.waiting?.count == 1)
}

private func arrivalSeesWhatWasCommitted(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for round in Int64(1)...20 {
        // Other commits run beside it: none that ended before the call may be missing.
        let committed = Mutex<(last: Int64, isDone: Bool)>((0, false))
        let commits = Task {
            // Also if a commit fails.
            defer { committed.withLock { $0.isDone = true } }
            for position in round * 10..<round * 10 + 10 {
                _ = try await fixture.append(fixture.envelope(position))
                committed.withLock { $0.last = position }
            }
        }
        var isDone = false
        while !isDone {
            let state = committed.withLock { $0 }
            let last = state.last
            isDone = state.isDone
            let arrival = try await fixture.store.arrival(
                of: byID(fixture.device), .init(after: round * 10 - 1, limit: 100, bytes: 100_000), at: start)
            let expected = last >= round * 10 ? Array(round * 10...last) : []
            #expect(arrival?.envelopes?.map(\.position).prefix(expected.count) == expected[...])
        }
        try await commits.value
    }
}
