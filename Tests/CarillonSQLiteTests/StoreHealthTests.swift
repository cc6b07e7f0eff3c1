import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import StoreConformance
import TestStores
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StoreHealthTests {
    private func fault(_ work: () async throws -> Void) async -> StoreFault.Kind? {
        do {
            try await work()
            return nil
        } catch {
            return (error as? StoreFault)?.kind
        }
    }

    struct Use: Sendable, CustomTestStringConvertible {
        var page: String
        var run: @Sendable (StoreFixture) async throws -> Void
        var testDescription: String { page }
    }

    static let uses = [
        Use(page: "envelope") { _ = try await $0.waiting() },
        Use(page: "app") { _ = try await $0.store.apps() },
        Use(page: "access_key_of_app") { _ = try await $0.store.keys() },
        Use(page: "due") { _ = try await $0.append($0.envelope(99)) },
        Use(page: "idempotency_end") { _ = try await $0.store.sweep(at: StoreFixture.start, limit: 10) },
    ]

    @Test(arguments: uses)
    func `damage that is met anywhere is remembered`(use: Use) async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        _ = try await fixture.append(fixture.envelope(1))
        try fixture.sqlite.close()
        try Damage.overwrite(use.page, in: directory + "/carillon.sqlite")
        let damaged = fixture.again(try SQLiteStore(directory: directory))
        #expect(await fault { try await damaged.store.checkHealth() } == nil)
        #expect(await fault { try await use.run(damaged) } == .damaged)
        #expect(await fault { try await damaged.store.checkHealth() } == .damaged)
        #expect(await fault { try damaged.sqlite.close() } == .damaged)
        try SQLiteStore(directory: directory).close()
    }

    @Test func `only a probe shows that the disk accepts writes again`() async throws {
        let fixture = try await StoreFixture(.file)
        let full = StoreFault(.full, "the disk is full")
        fixture.sqlite.refuseCommits(full)
        #expect(await fault { _ = try await fixture.append(fixture.envelope(1)) } == .full)
        fixture.sqlite.refuseCommits(nil)
        // An unchanged value is not written, though it is counted as a change.
        try await fixture.sqlite.run("UPDATE device SET seen_at = seen_at")
        fixture.sqlite.refuseCommits(full)
        #expect(await fault { try await fixture.store.checkWrites() } == .full)
        fixture.sqlite.refuseCommits(nil)
        #expect(await fault { try await fixture.store.checkWrites() } == nil)
        // Nothing is written while nothing failed.
        fixture.sqlite.refuseCommits(full)
        #expect(await fault { try await fixture.store.checkWrites() } == nil)
        fixture.sqlite.refuseCommits(nil)
    }

    @Test(arguments: [true, false])
    func `a missing or replaced file accepts nothing more`(isReplaced: Bool) async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        _ = try await fixture.append(fixture.envelope(1))
        if isReplaced {
            try FileManager.default.moveItem(atPath: directory + "/carillon.sqlite", toPath: directory + "/old")
            try FileManager.default.copyItem(atPath: directory + "/old", toPath: directory + "/carillon.sqlite")
        } else {
            try FileManager.default.removeItem(atPath: directory)
        }
        #expect(await fault { try await fixture.store.checkHealth() } == .unavailable)
        #expect(await fault { _ = try await fixture.append(fixture.envelope(2)) } == .unavailable)
        #expect(await fault { try fixture.sqlite.close() } == .unavailable)
    }

    @Test func `a full disk passes, and is not remembered`() async throws {
        let fixture = try await StoreFixture(.file)
        try await fixture.sqlite.limitPages(toUsedPlus: 0)
        #expect(await fault { _ = try await fixture.append(fixture.envelope(1, bytes: 100_000)) } == .full)
        #expect(await fault { try await fixture.store.checkHealth() } == nil)
        try fixture.sqlite.close()
    }
}
