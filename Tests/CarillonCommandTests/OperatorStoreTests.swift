import ArgumentParser
import CarillonCore
import CarillonServer
import TestSupport
import Testing

@testable import CarillonCommand

@Suite(.timeLimit(.minutes(5)))
struct OperatorStoreTests {
    @Test func `a command on a data directory leaves homes and the map of shards as they are`() async throws {
        let directory = try TemporaryDirectory.make()
        let options = try OperatorOptions.parse(["--data", directory])
        var opened = try Composition.stores.open(directory: directory, makesMissing: true, settings: StoreSettings())
        let fence = try await opened.store.addIncarnation(of: .only)
        let place = ShardMap.Place(node: .only, epoch: 1)
        try await ShardMap.take(.all, to: place, by: opened.store.home(fence), in: opened.store)
        let map = try await opened.store.shardMap()
        try opened.close()
        try await options.perform { domain in
            let apps = try await domain.apps.list()
            #expect(apps.isEmpty)
        } onServer: { _ in
            Issue.record("No server was named.")
        }
        opened = try Composition.stores.open(directory: directory, makesMissing: false, settings: StoreSettings())
        #expect(map.version == 1)
        #expect(try await opened.store.shardMap() == map)
        _ = try await opened.store.home(fence).addContent([1])
        try opened.close()
    }
}
