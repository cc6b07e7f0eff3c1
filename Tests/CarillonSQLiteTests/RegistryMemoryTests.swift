import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

private let start = StoreFixture.start

/// The memory of the registry in the store beside other work.
@Suite(.timeLimit(.minutes(5)))
struct RegistryMemoryTests {
    @Test func `a version that was returned counts at once, beside readers of the version`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.file)
        let (store, key) = (fixture.sqlite, AppDocument.Key(.alertText, of: fixture.device.app))
        let ends = Counted()
        let readings = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var readings = 0
                    while ends.count == 0, !Task.isCancelled {
                        _ = try await store.registryVersion()
                        readings += 1
                        // A version that is remembered is returned without a suspension.
                        await Task.yield()
                    }
                    return readings
                }
            }
            for _ in 0..<1000 {
                let version = try #require(try await store.putDocument([1], as: key, at: start))
                let present = try await store.registryVersion()
                #expect(present >= version)
            }
            ends.increment()
            var readings = 0
            for try await count in group { readings += count }
            return readings
        }
        #expect(readings > 100)
    }

    @Test(arguments: [false, true])
    func `a document that is stored beside work that fails is remembered as it is`(isAfter: Bool) async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, app) = (fixture.sqlite, fixture.device.app)
        let (memory, registry) = (store.memory, store.registry)
        let key = AppDocument.Key(.alertText, of: app)
        @Sendable func hasAlertText() async throws -> Bool {
            try await store.group.run { db in try ReachReader(db, memory: memory).hasAlertText(app) }
        }
        #expect(try await !hasAlertText())
        let before = try await store.registryVersion()
        let put: @Sendable () async throws -> RegistryVersion? = {
            try await store.putDocument(Array("{}".utf8), as: key, at: start)
        }
        let fail: @Sendable () async throws -> RegistryVersion? = {
            try await store.group.run { db -> RegistryVersion? in
                try db.execute(sql: "DELETE FROM app_document")
                memory.pushes.noteAlertText(of: app, nil)
                _ = try ReachReader(db, memory: memory).hasAlertText(app)
                try registry.increment(in: db)
                throw StoreFault(.full, "its own")
            }
        }
        let gate = Gate()
        async let first: Void = store.group.run { _ in gate.pass() }
        await gate.reached()
        let results = await together(isAfter ? [fail, put] : [put, fail]) { gate.open() }
        try await first
        #expect(results.map { (try? $0.get()) != nil } == (isAfter ? [false, true] : [true, false]))
        #expect(try await hasAlertText())
        let present = try await store.registryVersion()
        #expect(present.rawValue == before.rawValue + 1)
        #expect(try await store.document(key)?.version == present)
    }
}
