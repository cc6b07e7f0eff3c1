import CarillonCore
import GRDB
import Testing

@testable import CarillonSQLite

struct ShardConditionTests {
    private let sets = [[0], [1023], [3, 700]].map { numbers in
        ShardSet(numbers.map { number in Shard(number: UInt16(number)) })
    }

    @Test func `sets of some shards use one text, so that each connection keeps one statement`() {
        #expect(Set((sets + [.none]).map { $0.condition(on: "device") }).count == 1)
        #expect(ShardSet.all.condition(on: "device").isEmpty)
        #expect(Set((sets + [.none]).map { $0.condition(onShard: "shard") }).count == 1)
        #expect(ShardSet.all.condition(onShard: "shard").isEmpty)
    }

    @Test func `the numbers of the shards are bound`() throws {
        let database = try DatabaseQueue(configuration: SQLiteStore.configuration)
        try database.write { db in
            try db.execute(sql: "CREATE TABLE t (shard INTEGER)")
            for shard in 0..<Shard.count { try db.execute(sql: "INSERT INTO t VALUES (?)", arguments: [shard]) }
            for shards in sets + [.none, .all] {
                let sql = "SELECT count(*) FROM t WHERE shard <= ? \(shards.condition(onShard: "shard")) AND shard >= ?"
                var select = try BoundStatement(db, sql)
                select.bind(Int64(800))
                select.bind(numbersOf: shards)
                select.bind(Int64(2))
                let bound = try select.first { Int($0.integer(0)) }
                let expected = (2...800).count { shards.contains(Shard(number: UInt16($0))) }
                #expect(bound == expected)
            }
        }
    }

    @Test func `the set is bound in both kinds of statements`() throws {
        let database = try DatabaseQueue(configuration: SQLiteStore.configuration)
        try database.write { db in
            try db.execute(sql: "CREATE TABLE t (device INTEGER)")
            for device in 1...3000 { try db.execute(sql: "INSERT INTO t VALUES (?)", arguments: [device]) }
            for shards in sets + [.none, .all] {
                let sql = "SELECT count(*) FROM t WHERE device <= ? \(shards.condition(on: "device")) AND device >= ?"
                let expected = (2...2000).count { shards.contains(Shard(of: DeviceSerial(Int64($0)))) }
                let found = try Int.first(db, sql, shards.arguments(with: [2000, 2]))
                #expect(found == expected)
                var select = try BoundStatement(db, sql)
                select.bind(Int64(2000))
                select.bind(shards)
                select.bind(Int64(2))
                let bound = try select.first { Int($0.integer(0)) }
                #expect(bound == expected)
            }
        }
    }
}
