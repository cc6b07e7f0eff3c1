import CarillonExpression
import CarillonWire
import TestStores
import TestSupport
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// The cost limit of an item follows the rules of its app.
@Suite(.timeLimit(.minutes(5)))
struct ItemCostLimitTests {
    private func engine(
        _ world: EngineWorld, _ documents: DocumentReadings, _ catcher: LogCatcher = LogCatcher()
    ) -> ItemEngine {
        ItemEngine(
            store: world.store, home: world.domain.runtime, documents: AppDocuments(store: documents),
            firings: world.domain.firings,
            conditions: world.domain.itemEngine.conditions, time: world.domain.time, ticks: .system,
            logger: catcher.logger)
    }

    private func publish(to engine: ItemEngine, _ world: EngineWorld) async throws {
        _ = try await engine.publish(ItemUpdate(["price": ItemValue(.double(1))]), to: world.item, mode: .merge)
        try await eventually { await engine.isIdle }
    }

    private func setCost(_ cost: Int, in world: EngineWorld) async throws {
        let rules = Array(#"{"items":[{"pattern":"*","open":true}],"conditionCost":\#(cost)}"#.utf8)
        let key = AppDocument.Key(.itemRules, of: world.device.app)
        _ = try #require(try await world.store.putDocument(rules, as: key, at: world.domain.time.now()))
    }

    @Test func `an update of an item in memory reads its rules once`() async throws {
        let world = try await EngineWorld(stores.open())
        let documents = DocumentReadings(world.store)
        let engine = engine(world, documents)
        try await publish(to: engine, world)
        let before = documents.lookUps
        for _ in 0..<10 { try await publish(to: engine, world) }
        #expect(documents.lookUps - before == 10)
    }

    @Test func `a condition is armed by the present cost limit`() async throws {
        let world = try await EngineWorld(stores.open())
        let engine = engine(world, DocumentReadings(world.store))
        try await publish(to: engine, world)
        let subscription = try await world.subscribe("price > 5.0")
        try await setCost(77, in: world)
        #expect(await engine.costLimit(of: world.item) == ItemRules.standardCost)
        try await engine.follow([subscription.serial], looks: false)
        #expect(await engine.costLimit(of: world.item) == 77)
        #expect(await engine.population.watches == 1)
    }

    @Test func `an item keeps its cost limit while its rules cannot be read`() async throws {
        let world = try await EngineWorld(stores.open())
        let (documents, catcher) = (DocumentReadings(world.store), LogCatcher())
        let engine = engine(world, documents, catcher)
        try await publish(to: engine, world)
        try await setCost(77, in: world)
        documents.fails(true)
        try await publish(to: engine, world)
        #expect(await engine.costLimit(of: world.item) == ItemRules.standardCost)
        #expect(catcher.lines.contains { $0.hasPrefix("error cannot read item rules") })
        documents.fails(false)
        try await publish(to: engine, world)
        #expect(await engine.costLimit(of: world.item) == 77)
    }
}

extension ItemEngine {
    fileprivate func costLimit(of key: ItemKey) -> Int? { items[key]?.index.costLimit }
}
