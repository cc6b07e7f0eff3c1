import CarillonBasics
import CarillonWire
import Logging
import NIOPosix
import TestStores
import TestSupport
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// Updates of items whose shards move.
@Suite(.timeLimit(.minutes(5)))
struct ItemsOfClosedShardsTests {
    private let shared: Domain
    private let homes: [HomeDomain]
    private let app: AppSerial
    /// Items of the second home, in shards of their own.
    private let names: [ItemName]

    init() async throws {
        let configuration = HomeDomain.Configuration(
            addresses: PublicURLs("https://push.example.com"),
            scheduler: .on(MultiThreadedEventLoopGroup.singleton),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        (shared, homes) = try await HomeDomain.open(stores.open(), configuration, homes: 2, link: { $0 })
        let app = try await shared.apps.create(try AppID.checked("com.example.app")).serial
        let rule = JSONValue.object([
            .init(name: "pattern", value: .string("*")), .init(name: "open", value: .bool(true)),
        ])
        try await homes[0].items.setRules(
            try ItemRules(.object([.init(name: "items", value: .array([rule]))])), of: app)
        var shards: Set<Shard> = []
        names = (0..<100).compactMap { ItemName("i\($0)") }.filter { name in
            let shard = Shard(of: app, item: name.text)
            return shard.number >= 512 && shards.insert(shard).inserted
        }
        self.app = app
    }

    private func shard(_ place: Int) -> Shard { Shard(of: app, item: names[place].text) }

    private func update(_ place: Int, _ value: Int) -> PublishItems.Update {
        .init(item: names[place], fields: [WrittenField("x", .number(String(value)))], place: nil)
    }

    private func version(_ place: Int, at home: Int) async throws -> Int64 {
        try await homes[home].items.item(names[place], of: app).version
    }

    private func published(_ results: [Result<ItemReceipt, any Error>]) -> [Bool] {
        results.map { result in if case .success = result { true } else { false } }
    }

    @Test(arguments: [true, false], [0, 1])
    func `updates of an item whose shard is closed wait for the end of the move`(isGiven: Bool, asked: Int) async throws {
        let gate = try #require(homes[1].runtime.gate)
        #expect(await gate.close(shard(1), atMost: .zero))
        let results = Task { await homes[asked].publishAtHomes([update(0, 1), update(1, 2), update(1, 3)], of: app) }
        // The shards of all updates were checked before this one was published.
        try await eventually { (try? await version(0, at: 1)) == 1 }
        if isGiven {
            homes[0].runtime.take(shard(1))
            shared.homes.move(ShardSet([shard(1)]), to: 0)
            gate.remove(shard(1))
        } else {
            gate.reopen(shard(1))
        }
        #expect(published(await results.value) == [true, true, true])
        #expect(try await version(1, at: isGiven ? 0 : 1) == 2)
        #expect(try await version(0, at: 1) == 1)
    }

    @Test func `updates of an item whose shard stays closed are refused, and others are published`() async throws {
        let gate = try #require(homes[1].runtime.gate)
        #expect(await gate.close(shard(1), atMost: .zero))
        let results = await homes[1].publishAtHomes([update(1, 1), update(0, 2), update(1, 3), update(2, 4)], of: app)
        #expect(published(results) == [false, true, false, true])
    }

    @Test func `a question that has entered its shard is answered while the shard closes`() async throws {
        let runtime = homes[1].runtime
        let question = PublishItems(shard: shard(0), app: app, updates: [update(0, 1)])
        let answers = try #require(runtime.answers)
        let answer = try await runtime.whileClosing(shard(0)) { try await answers.answer(question) }
        let isPublished = answer.map { result in if case .success? = result { true } else { false } }
        #expect(isPublished == [true])
    }
}
