import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import Synchronization
import TestStores
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct BackupTests {
    private func fault(_ work: () async throws -> Void) async -> StoreOpenFault.Kind? {
        do {
            try await work()
            return nil
        } catch {
            return (error as? StoreOpenFault)?.kind
        }
    }

    /// The positions that wait in a data directory.
    private func waiting(in directory: String, for device: Device) async throws -> [Int64] {
        let store = try SQLiteStore(directory: directory, makesMissing: false)
        let envelopes = try await store.waiting(
            device: device.serial, after: 0, limit: 10_000, bytes: 1 << 30, at: StoreFixture.start)
        try store.close()
        return (envelopes ?? []).map(\.position)
    }

    private func files(in directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    }

    @Test func `attachments that are whole are taken along, and no others`() async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        let folder = AttachmentFolder(in: directory)
        let owner = AttachmentUser(app: fixture.device.app, principal: .senders)
        let ids = (1...3).map { AttachmentID(Bytes16(high: UInt64($0) << 48, low: 1)) }
        for (id, isWhole) in zip(ids, [true, false, true]) {
            let request = AttachmentRequest(
                proposed: id, owner: owner, length: 3, digest: nil, readers: [.senders], lifetimeSeconds: 60,
                idempotency: nil, limits: .init())
            guard case .added(let attachment) = try await fixture.store.addAttachment(request, at: StoreFixture.start) else {
                throw StoreFixture.Missing()
            }
            try await folder.create(id)
            try await folder.openGrowing(id, at: 0)?.write(SomeBytes("abc"), at: 0)
            guard isWhole else { continue }
            try await folder.publish(id)
            #expect(try await fixture.store.completeAttachment(attachment.serial, expiresAt: StoreFixture.start))
        }
        // An attachment with a row and without a file.
        try await folder.remove([ids[2]])
        let place = try TemporaryDirectory.make()
        try await StoreBackup.make(of: directory, at: place + "/backup")
        #expect(try files(in: place) == ["backup", "backup.attachments"])
        // The backup still has the attachment that the server removes now.
        try await folder.remove([ids[0]])
        try fixture.sqlite.close()
        try await StoreBackup.restore(place + "/backup", to: place + "/restored", at: StoreFixture.start)
        let restored = AttachmentFolder(in: place + "/restored")
        #expect(try await restored.open(ids[0])?.read(at: 0, count: 9) == Array("abc".utf8))
        #expect(try await restored.open(ids[1]) == nil)
        #expect(try await restored.openGrowing(ids[1], at: 0) == nil)
        #expect(try await restored.open(ids[2]) == nil)
        let mode = try FileManager.default.attributesOfItem(atPath: place + "/backup.attachments")[.posixPermissions]
        #expect(mode as? Int == 0o700)
    }

    @Test func `a backup of a store in use is restored as it was`() async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        for position in 1...5 { _ = try await fixture.append(fixture.envelope(Int64(position))) }
        let place = try TemporaryDirectory.make()
        try await StoreBackup.make(of: directory, at: place + "/backup")
        #expect(try files(in: place) == ["backup"])
        let mode = try FileManager.default.attributesOfItem(atPath: place + "/backup")[.posixPermissions] as? Int
        #expect(mode == 0o600)
        _ = try await fixture.append(fixture.envelope(6))
        try fixture.sqlite.close()

        let before = try Data(contentsOf: URL(fileURLWithPath: place + "/backup"))
        try await StoreBackup.restore(place + "/backup", to: place + "/restored", at: StoreFixture.start)
        #expect(try await waiting(in: place + "/restored", for: fixture.device) == [1, 2, 3, 4, 5])
        #expect(try await waiting(in: directory, for: fixture.device) == [1, 2, 3, 4, 5, 6])
        #expect(try Data(contentsOf: URL(fileURLWithPath: place + "/backup")) == before)
        #expect(try files(in: place) == ["backup", "restored"])
        #expect(try !files(in: place + "/restored").contains { $0.contains("new") })
    }

    @Test func `a backup beside writes is of one moment, and has all that was answered before`() async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        let place = try TemporaryDirectory.make()
        let answered = Counter()
        try await withThrowingTaskGroup { group in
            group.addTask {
                var position: Int64 = 0
                while !Task.isCancelled {
                    position += 1
                    _ = try await fixture.append(fixture.envelope(position, bytes: 3000))
                    answered.set(position)
                    // On a slow machine a backup takes longer than the inbox has space.
                    if position > 2000 { try await Task.sleep(for: .milliseconds(5)) }
                }
            }
            await answered.reaches(50)
            for number in 1...5 {
                let floor = answered.value
                let backup = place + "/\(number)"
                try await StoreBackup.make(of: directory, at: backup)
                try await StoreBackup.restore(backup, to: backup + ".data", at: StoreFixture.start)
                let positions = try await waiting(in: backup + ".data", for: fixture.device)
                #expect(positions.count >= floor)
                #expect(positions == Array(1...Int64(positions.count)))
                await answered.reaches(answered.value + 20)
            }
            group.cancelAll()
        }
        try fixture.sqlite.close()
    }

    @Test func `nothing is written over, and nothing is made of nothing`() async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        let place = try TemporaryDirectory.make()
        try Data("mine".utf8).write(to: URL(fileURLWithPath: place + "/there"))
        #expect(await fault { try await StoreBackup.make(of: directory, at: place + "/there") } == .taken)
        #expect(try Data(contentsOf: URL(fileURLWithPath: place + "/there")) == Data("mine".utf8))
        #expect(await fault { try await StoreBackup.make(of: place, at: place + "/new") } == .missing)
        #expect(await fault { try await StoreBackup.make(of: directory, at: place + "/no/way") } == .notWritable)
        #expect(try files(in: place) == ["there"])

        try await StoreBackup.make(of: directory, at: place + "/backup")
        #expect(
            await fault { try await StoreBackup.restore(place + "/backup", to: directory, at: StoreFixture.start) }
                == .locked)
        try fixture.sqlite.close()
        #expect(
            await fault { try await StoreBackup.restore(place + "/backup", to: directory, at: StoreFixture.start) } == .taken
        )
        #expect(
            await fault { try await StoreBackup.restore(place + "/there", to: place + "/data", at: StoreFixture.start) }
                == .damaged)
        #expect(
            await fault { try await StoreBackup.restore(place + "/missing", to: place + "/data", at: StoreFixture.start) }
                == .missing)
        #expect(try files(in: place) == ["backup", "there"])
    }

    @Test func `a database that is in use elsewhere is no backup`() async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        let place = try TemporaryDirectory.make()
        let database = directory + "/carillon.sqlite"
        #expect(
            await fault { try await StoreBackup.restore(database, to: place + "/data", at: StoreFixture.start) } == .other)
        try fixture.sqlite.close()
        try await StoreBackup.restore(database, to: place + "/data", at: StoreFixture.start)
        #expect(try await waiting(in: place + "/data", for: fixture.device) == [])
    }

    @Test func `a damaged store returns no backup, and a damaged backup no store`() async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        for position in 1...50 { _ = try await fixture.append(fixture.envelope(Int64(position), bytes: 3000)) }
        let place = try TemporaryDirectory.make()
        try await StoreBackup.make(of: directory, at: place + "/backup")
        try fixture.sqlite.close()
        try Damage.overwrite("envelope", in: directory + "/carillon.sqlite")
        #expect(await fault { try await StoreBackup.make(of: directory, at: place + "/another") } == .damaged)
        try Damage.overwrite("envelope", in: place + "/backup")
        #expect(
            await fault { try await StoreBackup.restore(place + "/backup", to: place + "/data", at: StoreFixture.start) }
                == .damaged)
        #expect(try files(in: place) == ["backup", "data"])
        #expect(try files(in: place + "/data") == ["lock"])
    }

    @Test func `the files of an earlier attempt are no obstacle`() async throws {
        let fixture = try await StoreFixture(.file)
        let directory = try #require(fixture.sqlite.directory)
        let place = try TemporaryDirectory.make()
        try Data("half".utf8).write(to: URL(fileURLWithPath: place + "/backup.partial"))
        try await StoreBackup.make(of: directory, at: place + "/backup")
        #expect(try files(in: place) == ["backup"])
        try fixture.sqlite.close()
    }
}

/// A number that grows, and can be awaited.
private final class Counter: Sendable {
    private struct State {
        var value: Int64 = 0
        var waiters: [(Int64, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var value: Int64 { state.withLock { $0.value } }

    func set(_ value: Int64) {
        let due = state.withLock { state in
            state.value = value
            let due = state.waiters.filter { $0.0 <= value }
            state.waiters.removeAll { $0.0 <= value }
            return due
        }
        for (_, continuation) in due { continuation.resume() }
    }

    func reaches(_ value: Int64) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.value >= value { return true }
                state.waiters.append((value, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}
