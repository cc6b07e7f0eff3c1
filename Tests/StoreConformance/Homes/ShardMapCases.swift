import CarillonCore
import TestStores
import Testing

extension StoreCase {
    static let shardMaps: [StoreCase] = [
        StoreCase("a map that was never changed has no shard", emptyMap),
        StoreCase("each change of the map has the next version, and changes the named shards alone", changesAreVersioned),
        StoreCase("of changes of one version at once, one counts", oneChangeOfAVersion),
        StoreCase("the map stays in a store that is opened again", mapIsKept),
        StoreCase("a home that is removed takes no shard", removedHomeTakesNone),
        StoreCase("homes that acquire shards at once all have the acquired shards", takenAtOnce),
    ]
}

private func place(_ node: Int64, _ epoch: Int64) -> ShardMap.Place {
    ShardMap.Place(node: NodeNumber(node), epoch: epoch)
}

private func shards(_ numbers: Range<UInt16>) -> ShardSet { ShardSet(numbers.map(Shard.init(number:))) }

private func home(_ node: Int64, in store: any Store) async throws -> any HomeStore {
    store.home(try await store.addIncarnation(of: NodeNumber(node)))
}

private func emptyMap(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    #expect(try await store.shardMap() == ShardMap(version: 0, places: [:]))
}

private func changesAreVersioned(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let homeStore = try await home(1, in: store)
    #expect(try await homeStore.changeShards(.all, to: place(1, 5), from: 0) == 1)
    var map = try await store.shardMap()
    #expect(map.version == 1 && map.places.count == Shard.count)
    #expect(map.places.values.allSatisfy { $0 == place(1, 5) })
    #expect(try await homeStore.changeShards(shards(10..<13), to: place(2, 6), from: 1) == 2)
    map = try await store.shardMap()
    #expect(map.version == 2)
    for number in UInt16(0)..<1024 {
        let expected = (10..<13).contains(number) ? place(2, 6) : place(1, 5)
        #expect(map.places[Shard(number: number)] == expected)
    }
    for version in [Int64(0), 1, 3] {
        #expect(try await homeStore.changeShards(.all, to: place(3, 7), from: version) == nil)
    }
    #expect(try await store.shardMap() == map)
}

private func oneChangeOfAVersion(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let homeStore = try await home(1, in: store)
    for version in Int64(0)..<5 {
        let versions = try await atOnce(8) { number in
            try await homeStore.changeShards(.all, to: place(Int64(number), version), from: version)
        }
        let counted = versions.indices.filter { versions[$0] != nil }
        #expect(counted.count == 1)
        let winner = try #require(counted.first)
        #expect(versions[winner] == version + 1)
        let map = try await store.shardMap()
        #expect(map.version == version + 1)
        #expect(Set(map.places.values) == [place(Int64(winner), version)])
    }
}

private func mapIsKept(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let homeStore = try await home(1, in: store)
    _ = try await homeStore.changeShards(shards(0..<7), to: place(1, 2), from: 0)
    let map = try await store.shardMap()
    #expect(map.places.count == 7)
    guard let again = try await stores.restart(store) else { return }
    #expect(try await again.shardMap() == map)
}

private func removedHomeTakesNone(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let handles = try await HomeHandles(of: store)
    let take = HomeWrite("shards") { homeStore in
        _ = try await homeStore.changeShards(.all, to: place(1, 1), from: 0)
    }
    try await handles.check([take]) {
        let map = try await store.shardMap()
        return ["\(map.version)", "\(map.places.count)"]
    }
}

private func takenAtOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    _ = try await concurrently(4) { number in
        let homeStore = try await home(Int64(number), in: store)
        let first = UInt16(number) * 100
        try await ShardMap.take(
            shards(first..<first + 50), to: place(Int64(number), Int64(number)), by: homeStore, in: store)
    }
    let map = try await store.shardMap()
    #expect(map.version == 4 && map.places.count == 200)
    for number in UInt16(1)...4 {
        for shard in number * 100..<number * 100 + 50 {
            #expect(map.places[Shard(number: shard)] == place(Int64(number), Int64(number)))
        }
    }
}
