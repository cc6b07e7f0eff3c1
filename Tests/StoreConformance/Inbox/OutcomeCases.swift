import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let outcomes: [StoreCase] = [
        StoreCase("one device's outcomes leave another's alone", oneDevicesOutcomesLeaveAnothersAlone),
        StoreCase("an earlier acknowledgement is found, and its code is added", outcomeIsAmended),
    ]
}

private func outcomeIsAmended(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1))
    _ = try await fixture.store.commit([fixture.acknowledge(1)])
    let failed = FinalOutcome(.failed, code: ResultCode.handlerFailed, at: start.adding(seconds: 1))
    _ = try await fixture.store.commit([.finish(fixture.envelope(1).id, device: fixture.device.serial, failed)])
    let finalOutcome = try await fixture.store.record(of: fixture.envelope(1).id, at: start)?.finalOutcome
    #expect(finalOutcome == FinalOutcome(.acknowledged, code: ResultCode.handlerFailed, at: start))
}

private func oneDevicesOutcomesLeaveAnothersAlone(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(outcomes: 4))
    let other = try #require(
        try await fixture.insert(
            NewDevice(DeviceID(Bytes16(high: 2, low: 2)), app: try StoreFixture.appID), secret: [2]))
    let channel = try await StoreFixture.open(9, of: other, in: fixture.store)
    let theirs = fixture.envelope(1, on: channel)
    _ = try await fixture.append(theirs)
    _ = try await fixture.store.commit([
        .finish(theirs.id, device: other.serial, FinalOutcome(.acknowledged, at: start))
    ])
    for position in Int64(2)...20 {
        _ = try await fixture.append(fixture.envelope(position))
        _ = try await fixture.store.commit([fixture.acknowledge(position)])
    }
    #expect(try await fixture.store.record(of: theirs.id, at: start)?.finalOutcome?.outcome == .acknowledged)
}
