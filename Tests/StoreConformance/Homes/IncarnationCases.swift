import CarillonCore
import TestStores
import Testing

private let node = NodeNumber(1)

extension StoreCase {
    static let incarnations: [StoreCase] = [
        StoreCase("an incarnation is greater than each before, also in a store that is opened again", incarnationGrows),
        StoreCase("concurrent new incarnations are different, and the last one is live", addedAtOnce),
        StoreCase("a new incarnation of a node removes the former one, and no other", newRemovesFormer),
        StoreCase("an incarnation is removed once", removedOnce),
        StoreCase("an incarnation that was not added is refused", unknownIsRefused),
        StoreCase("a removal that fails leaves the home as it is", failedRemoval),
        StoreCase("the writes of a home before its removal exist, and none after it", removalBesideWrites),
    ]
}

/// Whether the home can write.
private func canWrite(_ homeStore: any HomeStore) async throws -> Bool {
    let write = HomeWrite("content") { homeStore in _ = try await homeStore.addContent([1]) }
    let kind = try await write.fault(through: homeStore)
    #expect(kind == nil || kind == .fenced)
    return kind == nil
}

private func incarnationGrows(_ stores: any StoreMaker) async throws {
    var store = try await stores.open(StoreSettings())
    var last: Int64 = 0
    for round in 0..<4 {
        let fence = try await store.addIncarnation(of: node)
        #expect(fence.node == node && fence.incarnation > last)
        last = fence.incarnation
        if round.isMultiple(of: 2) { _ = try await store.removeIncarnation(fence) }
        guard let again = try await stores.restart(store) else { continue }
        store = again
        let isLiving = try await canWrite(store.home(fence))
        #expect(isLiving == !round.isMultiple(of: 2))
    }
}

private func addedAtOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let fences = try await atOnce(8) { _ in try await store.addIncarnation(of: node) }
    #expect(Set(fences).count == 8)
    let last = fences.map(\.incarnation).max()
    for fence in fences {
        let isLiving = try await canWrite(store.home(fence))
        #expect(isLiving == (fence.incarnation == last))
    }
}

private func newRemovesFormer(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let former = try await store.addIncarnation(of: node)
    let other = try await store.addIncarnation(of: NodeNumber(2))
    #expect(try await canWrite(store.home(former)))
    let next = try await store.addIncarnation(of: node)
    #expect(try await !canWrite(store.home(former)))
    #expect(try await canWrite(store.home(other)))
    #expect(try await canWrite(store.home(next)))
    #expect(try await !store.removeIncarnation(former))
}

private func removedOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let fence = try await store.addIncarnation(of: node)
    let removals = try await atOnce(8) { _ in try await store.removeIncarnation(fence) }
    #expect(removals.count { $0 } == 1)
    #expect(try await !store.removeIncarnation(fence))
}

private func unknownIsRefused(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let fence = try await store.addIncarnation(of: node)
    let unknown = [
        HomeFence(node: node, incarnation: fence.incarnation + 1),
        HomeFence(node: NodeNumber(2), incarnation: fence.incarnation),
    ]
    for fence in unknown {
        #expect(try await !store.removeIncarnation(fence))
        #expect(try await !canWrite(store.home(fence)))
    }
    #expect(try await canWrite(store.home(fence)))
}

private func failedRemoval(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let fence = try await store.addIncarnation(of: node)
    #expect(try await canWrite(store.home(fence)))
    let full = StoreFault(.full, "the disk is full")
    stores.refuseChanges(of: store, with: full)
    await #expect(throws: full) { try await store.removeIncarnation(fence) }
    await #expect(throws: full) { try await store.addIncarnation(of: node) }
    stores.refuseChanges(of: store, with: nil)
    #expect(try await canWrite(store.home(fence)))
    #expect(try await store.removeIncarnation(fence))
    #expect(try await !canWrite(store.home(fence)))
}

private func removalBesideWrites(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    for round in Int64(0)..<10 {
        let fence = try await store.addIncarnation(of: node)
        let homeStore = store.home(fence)
        /// Whether an envelope was stored.
        @Sendable func append(_ place: Int) async throws -> Bool {
            let envelope = fixture.envelope(round * 100 + Int64(place))
            let write = HomeWrite("append") { homeStore in
                _ = try await homeStore.commit([.append(envelope, AppendRules())])
            }
            let kind = try await write.fault(through: homeStore)
            #expect(kind == nil || kind == .fenced)
            return kind == nil
        }
        #expect(try await append(1))
        // The removal is one of the calls. It finds the stored state.
        let results = try await atOnce(16) { number -> (isStored: Bool, found: Int) in
            guard number == 4 else { return (try await append(number + 10), 0) }
            _ = try await store.removeIncarnation(fence)
            return (false, try await fixture.waiting(after: round * 100).count)
        }
        #expect(try await !append(99))
        let stored = 1 + results.count { $0.isStored }
        #expect(results[4].found == stored)
        #expect(try await fixture.waiting(after: round * 100).count == stored)
    }
}
