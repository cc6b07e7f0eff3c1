import CarillonCore
import CarillonWire
import Synchronization
import Testing

private let start = StoreFixture.start
private let load = DeliveryMachine.Load(after: 0, limit: 2, bytes: 10_000)

private func envelopes(_ arrival: Arrival?) -> [Envelope]? {
    if case .read(let envelopes)? = arrival?.inbox { envelopes } else { nil }
}

extension StoreCase {
    static let arrivals: [StoreCase] = [
        StoreCase(
            "a device that arrives is found by either name, with the first of what waits",
            arrivalIsFoundByEitherName),
        StoreCase("a device that is refused, or is none, has no inbox", refusedArrivalHasNoInbox),
        StoreCase(
            "what is committed before an arriving device is let in is in its page",
            arrivalSeesWhatWasCommitted),
    ]
}

private func arrivalIsFoundByEitherName(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for position in Int64(1)...3 { _ = try await fixture.append(fixture.envelope(position, ttl: position)) }
    for name in [DeviceName.id(fixture.device.id), .credential(fixture.device.credentialHash)] {
        let arrival = try await fixture.store.arrival(of: name, load, at: start) { _ in .accept }
        #expect(arrival?.device == fixture.device)
        #expect(envelopes(arrival)?.map(\.position) == [1, 2])
    }
    var later = load
    later.after = 1
    let rest = try await fixture.store.arrival(
        of: .id(fixture.device.id), later, at: start.adding(seconds: 2), decide: { _ in .accept })
    #expect(envelopes(rest)?.map(\.position) == [3])
}

private func refusedArrivalHasNoInbox(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1))
    let name = DeviceName.id(fixture.device.id)
    #expect(try await fixture.store.arrival(of: name, load, at: start) { _ in .refuse } == nil)
    let unread = try await fixture.store.arrival(of: name, load, at: start) { _ in .acceptUnread }

    #expect(unread == Arrival(device: fixture.device, inbox: .unread))
    let asked = Mutex(0)
    let other = DeviceName.id(DeviceID(Bytes16(high: 3, low: 3)))
    let none = try await fixture.store.arrival(of: other, load, at: start) { _ in
        asked.withLock { $0 += 1 }
        return .accept
    }
    #expect(none == nil && asked.withLock { $0 } == 0)
}

private func arrivalSeesWhatWasCommitted(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for round in Int64(1)...20 {
        // Commits go on beside it: none that ended before the answer may be missing.
        let committed = Mutex<Int64>(0)
        let commits = Task {
            for position in round * 10..<round * 10 + 10 {
                _ = try await fixture.append(fixture.envelope(position))
                committed.withLock { $0 = position }
            }
        }
        let before = Mutex<Int64>(0)
        let arrival = try await fixture.store.arrival(
            of: .id(fixture.device.id), .init(after: round * 10 - 1, limit: 100, bytes: 100_000), at: start
        ) { _ in
            before.withLock { $0 = committed.withLock { $0 } }
            return .accept
        }
        let last = before.withLock { $0 }
        let expected = last >= round * 10 ? Array(round * 10...last) : []
        #expect(envelopes(arrival)?.map(\.position).prefix(expected.count) == expected[...])
        try await commits.value
    }
}
