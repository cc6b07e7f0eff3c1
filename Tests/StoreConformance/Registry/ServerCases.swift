import CarillonCore
import CarillonWire
import Testing

private let first = ServerID(Bytes16(high: 1, low: 2))
private let second = ServerID(Bytes16(high: 3, low: 4))

extension StoreCase {
    static let server: [StoreCase] = [
        StoreCase("a server's id is made once, and stays with its store", serversIdIsMadeOnce),
        StoreCase("each start has an epoch of its own, later than every place that is stored", eachStartHasAnEpochOfItsOwn),
        StoreCase("the keys of tokens are made once", keysOfTokensAreMadeOnce),
        StoreCase("a store that is well says so", storeThatIsWellSaysSo),
    ]
}

private func serversIdIsMadeOnce(_ stores: any StoreMaker) async throws {
    var store = try await stores.open(StoreSettings())
    #expect(try await store.serverID { first } == first)
    #expect(try await store.serverID { second } == first)
    guard let again = try await stores.reopen(store, StoreSettings()) else { return }
    store = again
    #expect(try await store.serverID { second } == first)
}

private func eachStartHasAnEpochOfItsOwn(_ stores: any StoreMaker) async throws {
    var fixture = try await StoreFixture(stores)
    var last: Int64 = 0
    for round in Int64(0)..<4 {
        let epoch = try await fixture.store.claimEpoch()
        #expect(epoch > last)
        // One that went on in epochs after its own.
        last = epoch + round * 3
        let position = PositionSource(epoch: last).next(for: fixture.device.serial)
        #expect(try await fixture.append(fixture.envelope(position)) == .stored(replaced: nil))
        guard let store = try await stores.reopen(fixture.store, StoreSettings()) else { continue }
        fixture = fixture.again(store)
    }
}

private func keysOfTokensAreMadeOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let made = try await store.tokenKeys { Array(repeating: 7, count: 32) }
    #expect(made.map(\.bytes) == [Array(repeating: 7, count: 32)])
    #expect(try await store.tokenKeys { Array(repeating: 8, count: 32) } == made)
    guard let again = try await stores.reopen(store, StoreSettings()) else { return }
    #expect(try await again.tokenKeys { Array(repeating: 8, count: 32) } == made)
}

private func storeThatIsWellSaysSo(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    try await store.checkHealth()
}
