import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let waiting: [StoreCase] = [
        StoreCase("appended envelopes wait, in order, byte for byte", whatWasAppendedWaits),
        StoreCase("a limit of bytes returns at least one envelope", limitOfBytesGivesAtLeastOneEnvelope),
        StoreCase("concurrent commits are all done, each once", concurrentCommitsAreAllDone),
    ]
}

private func whatWasAppendedWaits(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let envelopes = [
        fixture.envelope(1), fixture.envelope(2, on: fixture.second, bytes: 0), fixture.envelope(5, bytes: 5000),
    ]
    for envelope in envelopes { #expect(try await fixture.append(envelope) == .stored(replaced: nil)) }
    #expect(try await fixture.waiting() == envelopes)
    #expect(try await fixture.waiting(after: 2) == [envelopes[2]])
    #expect(try await fixture.waiting(limit: 1) == [envelopes[0]])
    #expect(try await fixture.store.waitingCount(device: fixture.device.serial, at: start) == 3)
}

private func limitOfBytesGivesAtLeastOneEnvelope(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for position in 1...3 { _ = try await fixture.append(fixture.envelope(Int64(position), bytes: 1000)) }
    let some = try await fixture.store.waiting(
        device: fixture.device.serial, after: 0, limit: 9, bytes: 10, at: start)
    #expect(some?.map(\.position) == [1])
}

private func concurrentCommitsAreAllDone(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    await withThrowingTaskGroup(of: Void.self) { group in
        for position in 1...300 {
            group.addTask { _ = try await fixture.append(fixture.envelope(Int64(position))) }
        }
    }
    #expect(try await fixture.waiting(limit: 1000).map(\.position) == (1...300).map(Int64.init))
}
