import CarillonCore
import CarillonWire
import Testing

struct ShardTests {
    @Test func `the shard of a device never changes, as stored positions contain it`() {
        let numbers = [1, 2, 3, 1000, 1 << 20, 1 << 40 - 1].map { Shard(of: DeviceSerial($0)).number }
        #expect(numbers == [632, 241, 874, 34, 622, 689])
    }

    @Test(arguments: [0, 1, 511, 1023] as [UInt16])
    func `a serial from 2^40 on has its shard in its last 10 bits`(number: UInt16) {
        for counter in [1 << 30, 1 << 30 + 1, 1 << 52] as [Int64] {
            #expect(Shard(of: DeviceSerial(counter << 10 | Int64(number))).number == number)
        }
    }

    @Test func `the shard of an item never changes, as stored hand-overs name it`() {
        let items: [(app: Int64, name: String)] = [
            (1, "a"), (1, "b"), (2, "a"), (1, "stock.ACME"), (1, "\u{E9}"), (1 << 40, "a"),
        ]
        let numbers = items.map { Shard(of: AppSerial($0.app), item: $0.name).number }
        #expect(numbers == [515, 654, 392, 405, 204, 282])
        #expect(Shard(of: AppSerial(1), item: "e\u{301}").number != 204, "the same text in other bytes is another item")
    }

    @Test func `items are spread over all shards`() {
        var counts = [Int](repeating: 0, count: Shard.count)
        for number in 0..<102_400 { counts[Int(Shard(of: AppSerial(1), item: "item\(number)").number)] += 1 }
        #expect(counts.allSatisfy { (50...150).contains($0) })
    }

    @Test(arguments: [(0, 0), (7, 7), (1023, 1023), (1024, 0), (.max, 1023), (1 << 63, 0)] as [(UInt64, UInt16)])
    func `the id of a device has a shard in its last 10 bits`(low: UInt64, number: UInt16) {
        for high in [0, 1, UInt64.max] { #expect(Shard(of: DeviceID(Bytes16(high: high, low: low))).number == number) }
    }

    @Test func `the shards of apps and attachments never change, as every node computes them`() {
        let apps = [1, 2, 1000, 1 << 40].map { Shard(of: AppSerial($0)).number }
        #expect(apps == [632, 241, 34, 297])
        let values: [Bytes16] = [
            .init(high: 1, low: 2), .init(high: .max, low: 0), .init(high: 1 << 63, low: 1), .init(high: 0, low: 0),
        ]
        let attachments = values.map { Shard(of: AttachmentID($0)).number }
        #expect(attachments == [874, 391, 120, 0])
    }

    @Test func `a registration has a shard by its app and its secret, and a user agent by its id`() throws {
        let app = try #require(AppID("com.example.app"))
        let game = try #require(AppID("com.example.game"))
        let (secret, other) = (SecretHash(of: "secret".utf8), SecretHash(of: "other".utf8))
        let registrations = [(app, secret), (app, other), (game, secret)].map { Shard(of: $0, registration: $1).number }
        #expect(registrations == [812, 623, 218])
        let userAgent = try #require(UserAgentID(parsing: "0123456789abcdef0123456789ABCDEF"))
        #expect(Shard(ofUserAgent: userAgent.hash).number == 749)
        #expect(Shard(ofUserAgent: secret).number == 750)
    }

    @Test func `new devices are spread over all shards`() throws {
        let app = try #require(AppID("com.example.app"))
        var counts = [Int](repeating: 0, count: Shard.count)
        var anonymous = counts
        for number in 0..<51_200 {
            let hash = SecretHash(of: "\(number)".utf8)
            counts[Int(Shard(of: app, registration: hash).number)] += 1
            anonymous[Int(Shard(ofUserAgent: hash).number)] += 1
        }
        #expect((counts + anonymous).allSatisfy { (20...90).contains($0) })
    }

    @Test func `a set has the shards that were inserted, and no other`() {
        var set = ShardSet.none
        #expect(set.shards.isEmpty)
        var numbers: Set<UInt16> = []
        for number in [0, 63, 64, 65, 127, 512, 1023, 64] as [UInt16] {
            set.insert(Shard(number: number))
            numbers.insert(number)
            #expect(set.shards.map(\.number) == numbers.sorted())
        }
        for number in UInt16(0)..<1024 { #expect(set.contains(Shard(number: number)) == numbers.contains(number)) }
        #expect(set == ShardSet(numbers.map(Shard.init(number:))))
    }

    @Test func `the set of all shards has each`() {
        #expect(ShardSet.all.shards.map(\.number) == Array(0..<1024))
        #expect(ShardSet((0..<UInt16(1024)).map(Shard.init(number:))) == .all)
    }

    @Test func `a set is read from its bitmap`() {
        for set in [ShardSet.none, .all, ShardSet([0, 7, 8, 63, 64, 1023].map(Shard.init(number:)))] {
            #expect(set.bitmap.count == 128 && ShardSet(bitmap: set.bitmap) == set)
        }
        #expect(ShardSet([Shard(number: 9)]).bitmap.prefix(3) == [0, 2, 0])
        for count in [0, 127, 129] { #expect(ShardSet(bitmap: [UInt8](repeating: 0, count: count)) == nil) }
    }
}
