import CarillonCore
import CarillonWire
import TestStores
import Testing

private let first = ServerID(Bytes16(high: 1, low: 2))
private let second = ServerID(Bytes16(high: 3, low: 4))

extension StoreCase {
    static let server: [StoreCase] = [
        StoreCase("a server's id is created once, and stays with its store", serversIdIsMadeOnce),
        StoreCase("each start has an epoch of its own, later than every stored position", eachStartHasAnEpochOfItsOwn),
        StoreCase("an epoch is later than the positions of finished messages", epochIsLaterThanOutcomes),
        StoreCase("the keys of tokens are created once", keysOfTokensAreMadeOnce),
        StoreCase("the key ring is wrapped by an external key, and opens only with it", keyRingIsWrapped),
        StoreCase("the keys of the ring stay in order", keysStayInOrder),
        StoreCase("a healthy store reports it", storeThatIsWellSaysSo),
    ]
}

private func serversIdIsMadeOnce(_ stores: any StoreMaker) async throws {
    var store = try await stores.open(StoreSettings())
    #expect(try await store.serverID(proposing: first) == first)
    #expect(try await store.serverID(proposing: second) == first)
    guard let again = try await stores.restart(store) else { return }
    store = again
    #expect(try await store.serverID(proposing: second) == first)
}

private func eachStartHasAnEpochOfItsOwn(_ stores: any StoreMaker) async throws {
    var fixture = try await StoreFixture(stores)
    var last: Int64 = 0
    for round in Int64(0)..<4 {
        let epoch = try await fixture.store.claimEpoch()
        #expect(epoch > last)
        // A server that continued in epochs after its own.
        last = epoch + round * 3
        let position = PositionSource(epoch: last).next(for: fixture.device.serial)
        #expect(try await fixture.append(fixture.envelope(position)) == .stored(replaced: nil))
        guard let store = try await stores.restart(fixture.store) else { continue }
        fixture = fixture.again(store)
    }
}

private func epochIsLaterThanOutcomes(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    // A server that continued in epochs after its own.
    let last = try await fixture.store.claimEpoch() + 3
    let position = PositionSource(epoch: last).next(for: fixture.device.serial)
    #expect(try await fixture.append(fixture.envelope(position)) == .stored(replaced: nil))
    #expect(try await fixture.store.commit([fixture.acknowledge(position)]) == [.finished])
    #expect(try await fixture.outcome(position) == .acknowledged)
    #expect(try await fixture.store.claimEpoch() > last)
}

private func keysOfTokensAreMadeOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let made = try await KeyRing.open(store, wrappedBy: nil, random)
    #expect(made.map(\.bytes.count) == [32])
    #expect(try await KeyRing.open(store, wrappedBy: nil, random) == made)
    guard let again = try await stores.restart(store) else { return }
    #expect(try await KeyRing.open(again, wrappedBy: nil, random) == made)
}

private let random = RandomSource { .random(in: .min ... .max) }

private func keyRingIsWrapped(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let plain = try await KeyRing.open(store, wrappedBy: nil, random)
    let wrapping = WrappingKey(bytes: Array(repeating: 5, count: 32))
    #expect(try await KeyRing.open(store, wrappedBy: wrapping, random) == plain)
    let stored = try await store.keyRing()
    #expect(stored.map(\.isWrapped) == [true])
    #expect(!stored[0].bytes.contains(plain[0].bytes))
    #expect(try await KeyRing.open(store, wrappedBy: wrapping, random) == plain)
    #expect(try await store.keyRing() == stored)
    await #expect(throws: KeyRingFault.keyFileMissing) { try await KeyRing.open(store, wrappedBy: nil, random) }
    let other = WrappingKey(bytes: Array(repeating: 6, count: 32))
    await #expect(throws: KeyRingFault.keyFileWrong) { try await KeyRing.open(store, wrappedBy: other, random) }
    #expect(try await !store.replaceKeyRing([], with: []), "another caller was first")
    #expect(try await store.keyRing() == stored)
}

private func keysStayInOrder(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let keys = [7, 3, 9].map { StoredTokenKey(id: $0, bytes: Array(repeating: $0, count: 32), isWrapped: false) }
    #expect(try await store.replaceKeyRing([], with: keys))
    #expect(try await store.keyRing() == keys)
    let wrapping = WrappingKey(bytes: Array(repeating: 5, count: 32))
    #expect(try await KeyRing.open(store, wrappedBy: wrapping, random).map(\.id) == [7, 3, 9])
    #expect(try await KeyRing.open(store, wrappedBy: wrapping, random).map(\.id) == [7, 3, 9])
}

private func storeThatIsWellSaysSo(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    try await store.checkHealth()
    #expect(store.oldestChangeWait == .zero)
    #expect(store.commitTime == .zero)
}
