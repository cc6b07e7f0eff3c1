import CarillonCore
import CarillonWire
import Synchronization
import TestStores
import TestSupport
import Testing

extension StoreCase {
    static let serverTime: [StoreCase] = [
        StoreCase("a history is created once, also by concurrent calls, and another by a restoration", historyIsMadeOnce),
        StoreCase("concurrently claimed epochs are different", epochsAreDifferent),
        StoreCase("the counter of served seconds never goes back", servedSecondsNeverGoBack),
        StoreCase("a change that failed is found by the check of writes, until one succeeds", writesAreChecked),
        StoreCase("the time of a change is measured until it is answered", waitIsMeasured),
    ]
}

private func historyIsMadeOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let numbers = try await atOnce(8) { number in try await store.history(proposing: Int64(number) + 1) }
    let made = numbers[0]
    #expect((1...8).contains(made) && Set(numbers) == [made])
    #expect(try await store.history(proposing: 77) == made)
    let ids = try await atOnce(8) { number in
        try await store.serverID(proposing: ServerID(Bytes16(high: 1, low: UInt64(number))))
    }
    #expect(Set(ids.map(\.value)).count == 1)
    let another = ServerID(Bytes16(high: 2, low: 2))
    if let restored = try await stores.restored(store) {
        #expect(try await restored.history(proposing: 77) == 77)
        #expect(try await restored.serverID(proposing: another) == ids[0])
    }
    guard let again = try await stores.restart(store) else { return }
    #expect(try await again.history(proposing: 77) == made)
}

private func epochsAreDifferent(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let epochs = try await atOnce(8) { _ in try await store.claimEpoch() }
    #expect(Set(epochs).count == 8)
    let last = try #require(epochs.max())
    #expect(try await store.claimEpoch() > last)
}

private func servedSecondsNeverGoBack(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    #expect(try await store.servedSeconds() == 0)
    try await store.noteServed(60)
    #expect(try await store.servedSeconds() == 60)
    try await store.noteServed(59)
    #expect(try await store.servedSeconds() == 60)
    _ = try await atOnce(8) { number in try await store.noteServed(Int64(100 - number)) }
    #expect(try await store.servedSeconds() == 100)
    guard let again = try await stores.restart(store) else { return }
    #expect(try await again.servedSeconds() == 100)
}

private func writesAreChecked(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    try await store.checkWrites()
    let full = StoreFault(.full, "the disk is full")
    stores.refuseChanges(of: store, with: full)
    await #expect(throws: full) { try await store.noteServed(9) }
    #expect(try await store.servedSeconds() == 0, "nothing was changed")
    await #expect(throws: full) { try await store.checkWrites() }
    try await store.checkHealth()
    stores.refuseChanges(of: store, with: nil)
    try await store.checkWrites()
    try await store.noteServed(9)
    #expect(try await store.servedSeconds() == 9)
    try await store.checkWrites()
}

private func waitIsMeasured(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let seen = Mutex<(oldest: Duration, commit: Duration)?>(nil)
    stores.onCommit(of: store) {
        let times = (oldest: store.oldestChangeWait, commit: store.commitTime)
        seen.withLock { $0 = times }
    }
    try await store.noteServed(1)
    stores.onCommit(of: store, nil)
    let times = try #require(seen.withLock { $0 })
    #expect(times.oldest > .zero && times.commit > .zero)
    try await eventually { store.oldestChangeWait == .zero && store.commitTime == .zero }
}
