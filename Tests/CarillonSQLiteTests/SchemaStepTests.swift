import CarillonCore
import Crypto
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonSQLite

/// Steps of the schema, once released, and files whose tables are not those of their version.
@Suite(.timeLimit(.minutes(5)))
struct SchemaStepTests {
    /// The SQL of each step. A step that is on `main` never changes: a correction is a step of its own at the end.
    private static let digests = [
        "K+dpN1l/vAun",  // 1
        "Hk64dyhDe0vI",  // 2
        "qEOHlkQVYTXD",  // 3
        "8R1Eq4RjnZht",  // 4
        "MDYm4DuW8jEK",  // 5
        "j+O/uULfijLy",  // 6
        "XzyJMQ3v41pN",  // 7
        "jyFLqBadFOyg",  // 8
        "A7bUJC1Gj7/A",  // 9
        "ShCr0oXqL4Xs",  // 10
        "GBxBhpAsKXCO",  // 11
        "69VDBKiiasNE",  // 12
        "J7jRiTDZcQIZ",  // 13
        "MCWjdF+NCH4T",  // 14
        "YywXjXj5p/Zo",  // 15
        "pecdJrzEAqA+",  // 16
        "4vY0TsRO1Ngj",  // 17
        "zk/Rbwo097i8",  // 18
        "GjAkX/Q+sWHg",  // 19
        "pSvY/ObDhxQF",  // 20
        "pOmw1o7z0YiA",  // 21
        "9zeTb1knaglG",  // 22
        "ywiE4ReDdxBI",  // 23
        "UEmC+aTYzj7i",  // 24
        "0rkqdorc1+Ox",  // 25
        "TPqrzL46M3zk",  // 26
        "cd/7GoGZLNGl",  // 27
        "irIuk7u/wlgE",  // 28
        "iaFGgOGLpaXO",  // 29
        "j7qAGy0AszpA",  // 30
        "5Gqh5F3xqx+M",  // 31
        "MA42uUM+aH4L",  // 32
        "x1kfj/RUFwiR",  // 33
        "F4kqdMaiu0tt",  // 34
        "2qoi4rLFbo3p",  // 35
        "0L61gJc9GPce",  // 36
        "jMUC/0Bn8NVu",  // 37
        "EL3rq8eYAkxA",  // 38
        "i6dPZpWlrHOS",  // 39
        "H3jkaAzUYQSG",  // 40
        "jPnJRQNVbX3s",  // 41
    ]

    @Test func `every step runs the SQL with which it was released`() throws {
        let queue = try DatabaseQueue()
        var digests: [String] = []
        for version in 1...Schema.version {
            let statements = Mutex<[String]>([])
            try queue.write { db in
                db.trace { event in
                    guard case .statement(let statement) = event else { return }
                    statements.withLock { $0.append(statement.sql) }
                }
                try Schema.bring(db, to: version)
                db.trace(nil)
            }
            let text = statements.withLock { $0.joined(separator: "\n") }
            #expect(text.contains("PRAGMA user_version = \(version)"))
            digests.append(Data(SHA256.hash(data: Data(text.utf8)).prefix(9)).base64EncodedString())
        }
        #expect(digests == Self.digests, "add the digest of a new step, and change none")
    }

    @Test(arguments: [
        ("DROP TABLE service_cluster", "service_cluster"),
        ("ALTER TABLE service_provider DROP COLUMN icon", "service_provider"),
        ("DROP INDEX update_audit_at", "update_audit"),
        (
            """
            DROP INDEX update_audit_at;
            CREATE INDEX update_audit_at ON update_audit (app)
            """, "update_audit"
        ),
        ("CREATE TRIGGER stray AFTER DELETE ON watch BEGIN SELECT 1; END", "watch"),
        ("CREATE TABLE stray (id INTEGER PRIMARY KEY)", "stray"),
    ])
    func `a file with other tables than its version's is refused and left as it is`(sql: String, table: String) throws {
        let directory = try TemporaryDirectory.make()
        try SQLiteStore(directory: directory).close()
        let path = directory + "/carillon.sqlite"
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
        let before = try schema(of: path)
        let fault = #expect(throws: StoreOpenFault.self) { try SQLiteStore(directory: directory) }
        #expect(fault?.kind == .different)
        #expect(fault?.description.contains("the table \"\(table)\"") == true, "\(fault?.description ?? "")")
        #expect(try schema(of: path) == before)
    }

    @Test func `the schema has no triggers`() throws {
        let queue = try DatabaseQueue()
        let triggers = try queue.write { db in
            try Schema.bringUpToDate(db)
            return try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'trigger'")
        }
        #expect(triggers == [], "rules in CarillonCore decide and count, and the tables write the rows")
    }

    private func schema(of path: String) throws -> [String] {
        let queue = try DatabaseQueue(path: path)
        let sql = "SELECT type || name || coalesce(sql, '') FROM sqlite_master ORDER BY 1"
        let schema = try queue.read { try String.fetchAll($0, sql: sql) }
        try queue.close()
        return schema
    }

    @Test func `a file of an earlier version with other tables is not migrated`() throws {
        let directory = try TemporaryDirectory.make()
        let path = directory + "/carillon.sqlite"
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try Schema.bring(db, to: 14)
            try db.execute(sql: "ALTER TABLE watch DROP COLUMN last_detail")
        }
        try queue.close()
        let fault = #expect(throws: StoreOpenFault.self) { try SQLiteStore(directory: directory) }
        #expect(fault?.kind == .different)
        let again = try DatabaseQueue(path: path)
        #expect(try again.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 14)
        try again.close()
    }

    @Test func `comments, space and quotes of a definition make no difference`() {
        let left = SchemaComparison.normalized("CREATE TABLE \"a\" (\n    -- The name.\n    b TEXT -- of it\n) STRICT")
        #expect(left == SchemaComparison.normalized("CREATE TABLE a ( b TEXT ) STRICT"))
        #expect(left != SchemaComparison.normalized("CREATE TABLE a ( b BLOB ) STRICT"))
    }
}
