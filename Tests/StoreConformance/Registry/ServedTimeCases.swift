import CarillonCore
import CarillonWire
import Testing

extension StoreCase {
    static let servedTime: [StoreCase] = [
        StoreCase("the counter of served seconds never goes back", servedSecondsRise),
        StoreCase("concurrent starts agree on one identity and have epochs of their own", identityIsMadeOnce),
        StoreCase("a healthy store can be written", healthyStoreCanBeWritten),
    ]
}

private func servedSecondsRise(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    #expect(try await store.servedSeconds() == 0)
    try await store.noteServed(50)
    try await store.noteServed(40)
    #expect(try await store.servedSeconds() == 50)
    _ = try await concurrently(10) { try await store.noteServed(50 + Int64($0)) }
    #expect(try await store.servedSeconds() == 60)
    guard let again = try await stores.reopen(store, StoreSettings()) else { return }
    #expect(try await again.servedSeconds() == 60)
}

private func identityIsMadeOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let ids = try await concurrently(6) { number in
        try await store.serverID(orMake: { ServerID(Bytes16(high: 1, low: number)) })
    }
    let histories = try await concurrently(6) { number in try await store.history(orMake: { Int64(number) }) }
    #expect(ids == Array(repeating: ids[0], count: 6) && Set(histories).count == 1)
    let epochs = try await concurrently(6) { _ in try await store.claimEpoch() }
    #expect(Set(epochs).count == 6)
    guard let again = try await stores.reopen(store, StoreSettings()) else { return }
    #expect(try await again.serverID(orMake: { ServerID(Bytes16(high: 9, low: 9)) }) == ids[0])
    #expect(try await again.history(orMake: { 99 }) == histories[0])
    let next = try await again.claimEpoch()
    #expect(next > epochs.max() ?? .max)
}

private func healthyStoreCanBeWritten(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    try await fixture.store.checkWrites()
    _ = try await fixture.append(fixture.envelope(1))
    try await fixture.store.checkWrites()
    try await fixture.store.checkHealth()
    #expect(try await fixture.waiting().count == 1, "a check writes nothing that stays")
}
