import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestStores
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct DataDirectoryTests {
    private func refusal(opening directory: String) -> StoreOpenFault? {
        do {
            try SQLiteStore(directory: directory).close()
            return nil
        } catch {
            return error as? StoreOpenFault
        }
    }

    @Test func `committed data exists after opening again`() async throws {
        let directory = try TemporaryDirectory.make()
        let fixture = try await StoreFixture(try SQLiteStore(directory: directory))
        _ = try await fixture.append(fixture.envelope(1))
        let keys = try await KeyRing.open(fixture.store, wrappedBy: nil, RandomSource { 7 })
        try fixture.sqlite.close()
        let store = try SQLiteStore(directory: directory)
        let waiting = try await store.waiting(
            device: fixture.device.serial, after: 0, limit: 9, bytes: 9999, at: StoreFixture.start)
        #expect(waiting?.map(\.position) == [1])
        let again = try await KeyRing.open(store, wrappedBy: nil, RandomSource { 8 })
        #expect(again == keys)
        try store.close()
    }

    @Test func `after closing, the database file alone contains everything`() async throws {
        let fixture = try await StoreFixture(.file)
        _ = try await fixture.append(fixture.envelope(1))
        _ = try await fixture.waiting()
        try fixture.sqlite.close()
        let directory = try #require(fixture.sqlite.directory)
        let other = try TemporaryDirectory.make()
        try FileManager.default.copyItem(atPath: directory + "/carillon.sqlite", toPath: other + "/carillon.sqlite")
        let store = fixture.again(try SQLiteStore(directory: other))
        #expect(try await store.waiting().map(\.position) == [1])
        try store.sqlite.close()
    }

    @Test(arguments: [false, true])
    func `a file without content is refused and not changed`(isDatabase: Bool) throws {
        let directory = try TemporaryDirectory.make()
        let path = directory + "/carillon.sqlite"
        try Data().write(to: URL(fileURLWithPath: path))
        if isDatabase {
            // The copy of a young database without its log.
            let queue = try DatabaseQueue(path: path)
            try queue.inDatabase { db in try db.execute(sql: "PRAGMA journal_mode = WAL") }
            try queue.close()
        }
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(before.isEmpty != isDatabase)
        #expect(refusal(opening: directory)?.kind == .empty)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test func `a log without its database is refused and left as it is`() throws {
        let directory = try TemporaryDirectory.make()
        let log = directory + "/carillon.sqlite-wal"
        try Data("log".utf8).write(to: URL(fileURLWithPath: log))
        #expect(refusal(opening: directory)?.kind == .empty)
        #expect(try Data(contentsOf: URL(fileURLWithPath: log)) == Data("log".utf8))
        #expect(!FileManager.default.fileExists(atPath: directory + "/carillon.sqlite"))
    }

    @Test func `a directory without a store stays as it is when none is to be made`() throws {
        let directory = try TemporaryDirectory.make()
        for place in [directory, directory + "/missing"] {
            #expect {
                try SQLiteStore(directory: place, makesMissing: false)
            } throws: { error in
                (error as? StoreOpenFault)?.kind == .missing
            }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [])
    }

    @Test func `a making that was broken off is begun again`() throws {
        let directory = try TemporaryDirectory.make()
        try Data("half".utf8).write(to: URL(fileURLWithPath: directory + "/carillon.sqlite.new"))
        #expect(refusal(opening: directory) == nil)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(names.contains("carillon.sqlite"))
        #expect(!names.contains { $0.contains("new") })
    }

    @Test(arguments: [
        (ENOSPC, StoreOpenFault.Kind.full, "Free space"), (EDQUOT, .full, "Free space"),
        (EACCES, .notWritable, "Allow this user to write"), (EROFS, .notWritable, "for writing"),
        (ENOENT, .notWritable, "Create its directory"), (ENOTDIR, .notWritable, "Not a directory"),
    ])
    func `each cause has its own sentence`(cause: Int32, kind: StoreOpenFault.Kind, words: String) {
        let fault = StoreOpenFault(unusable: "/data", cause: cause)
        #expect(fault.kind == kind)
        #expect(fault.description.contains("/data"))
        #expect(fault.description.contains(words), "\(fault.description)")
    }

    @Test func `every commit waits for the disk`() async throws {
        let store = try SQLiteStore(directory: TemporaryDirectory.make())
        #expect(try await store.syncsEveryCommit())
        try store.close()
    }

    @Test func `a directory in use is refused`() throws {
        let directory = try TemporaryDirectory.make()
        let store = try SQLiteStore(directory: directory)
        #expect(refusal(opening: directory)?.kind == .locked)
        try store.close()
    }

    @Test func `a file of a newer version is refused and left as it is`() throws {
        let directory = try TemporaryDirectory.make()
        let path = directory + "/carillon.sqlite"
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try db.execute(sql: "CREATE TABLE future (x); PRAGMA application_id = \(0x4361_7269); PRAGMA user_version = 99")
        }
        try queue.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let fault = try #require(refusal(opening: directory))
        #expect(fault.kind == .newer)
        #expect(fault.description.contains("99"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test func `somebody else's database is refused and left as it is`() throws {
        let directory = try TemporaryDirectory.make()
        let path = directory + "/carillon.sqlite"
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in try db.execute(sql: "CREATE TABLE other (x)") }
        try queue.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(refusal(opening: directory)?.kind == .foreign)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test func `a file that is no database is refused and left as it is`() throws {
        let directory = try TemporaryDirectory.make()
        let path = directory + "/carillon.sqlite"
        let nonsense = Data((0..<8192).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try nonsense.write(to: URL(fileURLWithPath: path))
        #expect(refusal(opening: directory)?.kind == .damaged)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == nonsense)
    }

    @Test func `a place that cannot be a directory is refused`() throws {
        let directory = try TemporaryDirectory.make()
        try Data().write(to: URL(fileURLWithPath: directory + "/file"))
        #expect(refusal(opening: directory + "/file")?.kind == .notWritable)
        #expect(refusal(opening: directory + "/missing/deeper")?.kind == .notWritable)
    }

    @Test func `the database is for its owner only`() throws {
        let directory = try TemporaryDirectory.make() + "/new"
        let store = try SQLiteStore(directory: directory)
        let mode = try FileManager.default.attributesOfItem(atPath: directory)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        let file = try FileManager.default.attributesOfItem(atPath: directory + "/carillon.sqlite")
        #expect(file[.posixPermissions] as? Int == 0o600)
        try store.close()
    }

    @Test func `a full disk refuses writes, keeps its data, and accepts writes again when there is space`() async throws {
        let directory = try TemporaryDirectory.make()
        let fixture = try await StoreFixture(try SQLiteStore(directory: directory))
        _ = try await fixture.append(fixture.envelope(1))
        try await fixture.sqlite.limitPages(toUsedPlus: 4)
        var position: Int64 = 2
        var fault: StoreFault?
        while fault == nil, position < 200 {
            do {
                _ = try await fixture.append(fixture.envelope(position, bytes: 4000))
                position += 1
            } catch {
                fault = error as? StoreFault
            }
        }
        #expect(fault?.kind == .full)
        let waiting = try await fixture.waiting(limit: 1000).map(\.position)
        #expect(waiting == Array(1..<position))
        try await fixture.sqlite.limitPages(toUsedPlus: 1_000_000)
        #expect(try await fixture.append(fixture.envelope(position)) == .stored(replaced: nil))
    }
}
