import CarillonCore
import CarillonWire
import Crypto
import StoreConformance
import Synchronization
import TestSupport
import Testing

@testable import CarillonSQLite

/// A folder with single calls that fail, and a record of the calls.
private final class FaultyFiles: AttachmentFiles {
    let folder: AttachmentFolder
    let free = Mutex<Int64>(1 << 40)
    let fault = Mutex<(call: String, kind: StoreFault.Kind)?>(nil)
    let syncs = Mutex(0)
    let onPublish = Mutex<(@Sendable () async throws -> Void)?>(nil)

    init(_ folder: AttachmentFolder) { self.folder = folder }

    /// The fault is returned only once, as the kernel does for data that did not reach the disk.
    let isNotifiedOnce = Mutex(false)

    func meet(_ call: String) throws {
        guard let fault = fault.withLock({ $0 }), fault.call == call else { return }
        if isNotifiedOnce.withLock({ $0 }) { self.fault.withLock { $0 = nil } }
        throw StoreFault(fault.kind, call)
    }

    private struct File: GrowingFile {
        let file: any GrowingFile
        let files: FaultyFiles

        func write(_ bytes: any FileBytes, at offset: Int64) async throws {
            try files.meet("write")
            try await file.write(bytes, at: offset)
        }
        func sync() async throws {
            files.syncs.withLock { $0 += 1 }
            try files.meet("sync")
            try await file.sync()
        }
    }

    func create(_ id: AttachmentID) async throws {
        try meet("create")
        try await folder.create(id)
    }
    func openGrowing(_ id: AttachmentID, at offset: Int64) async throws -> (any GrowingFile)? {
        try await folder.openGrowing(id, at: offset).map { File(file: $0, files: self) }
    }
    func publish(_ id: AttachmentID) async throws {
        try meet("publish")
        try await folder.publish(id)
        try await onPublish.withLock { $0 }?()
    }
    func open(_ id: AttachmentID) async throws -> (any ReadableFile)? { try await folder.open(id) }
    func remove(_ ids: [AttachmentID]) async throws { try await folder.remove(ids) }
    func digest(ofGrowing id: AttachmentID) async throws -> [UInt8] { try await folder.digest(ofGrowing: id) }
    func freeBytes() async throws -> Int64 { free.withLock { $0 } }
    func list(after place: String?, before moment: Timestamp) async throws -> AttachmentPage {
        try await folder.list(after: place, before: moment)
    }
}

private final class World: Sendable {
    let directory = TemporaryDirectory()
    let fixture: StoreFixture
    let files: FaultyFiles
    let attachments: Attachments
    var owner: AttachmentUser { AttachmentUser(app: fixture.device.app, principal: .device(fixture.device.serial)) }
    var senders: AttachmentUser { AttachmentUser(app: fixture.device.app, principal: .senders) }

    init(_ change: (inout AttachmentLimits) -> Void = { _ in }) async throws {
        let store = try SQLiteStore(inMemory: .init())
        fixture = try await StoreFixture(store)
        files = FaultyFiles(AttachmentFolder(in: directory.path))
        var limits = AttachmentLimits()
        change(&limits)
        attachments = Attachments(
            records: store, files: files, limits: limits, time: TimeSource { StoreFixture.start }, random: .system)
    }

    func begin(_ length: Int64, digest: [UInt8]? = nil) async throws -> AttachmentID {
        try await attachments.begin(
            owner, length: length, digest: digest, readers: [.senders], lifetimeSeconds: 60, idempotency: nil
        ).id
    }

    @discardableResult
    func append(
        _ id: AttachmentID, _ parts: [String], at offset: Int64, isLast: Bool = false, digest: [UInt8]? = nil
    ) async throws -> CarillonCore.Attachment {
        try await attachments.append(to: id, of: owner, at: offset, contentDigest: digest, isLast: isLast) { upload in
            for part in parts { _ = try await upload.write(SomeBytes(part)) }
        }
    }

    func state(_ id: AttachmentID) async throws -> CarillonCore.Attachment {
        try await attachments.state(id, of: owner)
    }

    func content(_ id: AttachmentID) async throws -> String {
        let opened = try await attachments.open(id, for: senders)
        return String(decoding: try await opened.file.read(at: 0, count: 1 << 20), as: UTF8.self)
    }

    func code(_ work: () async throws -> Void) async -> ErrorCode? {
        do {
            try await work()
            return nil
        } catch {
            return (error as? Refusal)?.code
        }
    }

    var orphansGone: Bool {
        get async throws {
            var place: String?
            repeat {
                place = try await attachments.removeOrphans(after: place, before: Timestamp(milliseconds: .max))
            } while place != nil
            return try await files.listed().isEmpty
        }
    }
}

/// How many work on one upload at once.
private final class Inside: Sendable {
    let count = Mutex((now: 0, most: 0))

    /// Answers whether it was let in.
    func work(_ turns: UploadTurns) async -> Bool {
        do {
            try await turns.take(AttachmentID(Bytes16(high: 1, low: 1))) { turn in
                count.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                for _ in 0..<100 where turn.refusal == nil { await Task.yield() }
                count.withLock { $0.now -= 1 }
            }
            return true
        } catch {
            return false
        }
    }
}

extension RandomSource {
    fileprivate static let system = RandomSource {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}

/// Attachments over a real store and real files.
@Suite(.timeLimit(.minutes(5)))
struct AttachmentsTests {
    private func sha(_ text: String) -> [UInt8] { Array(SHA256.hash(data: Array(text.utf8))) }

    @Test func `an attachment arrives in parts, and exists when it is complete`() async throws {
        let world = try await World()
        let id = try await world.begin(10)
        #expect(try await world.append(id, ["ab", "cde"], at: 0).synced == 5)
        #expect(await world.code { _ = try await world.content(id) } == .attachmentUnknown)
        #expect(try await world.append(id, ["fghij"], at: 5).isComplete == false, "no request marked it as complete")
        #expect(try await world.append(id, [], at: 10, isLast: true).isComplete)
        #expect(try await world.content(id) == "abcdefghij")
        #expect(try await world.append(id, [], at: 10, isLast: true).isComplete, "the answer was lost")
        #expect(await world.code { try await world.append(id, [], at: 10) } == .uploadCompleted)
        #expect(await world.code { try await world.append(id, [], at: 9, isLast: true) } == .uploadCompleted)
        try await world.attachments.end(id, by: world.senders)
        #expect(try await world.files.listed().isEmpty)
    }

    @Test func `an offset is the number of bytes on disk, and is stored as they arrive`() async throws {
        let world = try await World { $0.syncBytes = 4 }
        let id = try await world.begin(100)
        let noted = Mutex<[Int64]>([])
        _ = try await world.attachments.append(to: id, of: world.owner, at: 0, contentDigest: nil, isLast: false) { upload in
            for _ in 0..<6 where try await upload.write(SomeBytes("xxx")) {
                noted.withLock { $0.append(upload.attachment.synced) }
            }
        }
        #expect(noted.withLock { $0 } == [6, 12, 18])
        #expect(world.files.syncs.withLock { $0 } == 3)
        #expect(try await world.state(id).synced == 18)
    }

    @Test func `a failed sync leaves the offset of the upload unchanged`() async throws {
        let world = try await World()
        let id = try await world.begin(10)
        try await world.append(id, ["abc"], at: 0)
        world.files.fault.withLock { $0 = ("sync", .unavailable) }
        await #expect(throws: StoreFault.self) { try await world.append(id, ["defghij"], at: 3, isLast: true) }
        world.files.fault.withLock { $0 = nil }
        #expect(try await world.state(id).synced == 3)
        #expect(try await world.append(id, ["DEFGHIJ"], at: 3, isLast: true).isComplete)
        #expect(try await world.content(id) == "abcDEFGHIJ")
    }

    @Test func `data that could not be synced once does not count as stored`() async throws {
        let world = try await World()
        let id = try await world.begin(6)
        world.files.isNotifiedOnce.withLock { $0 = true }
        world.files.fault.withLock { $0 = ("sync", .unavailable) }
        await #expect(throws: StoreFault.self) { try await world.append(id, ["abc"], at: 0) }
        #expect(world.files.syncs.withLock { $0 } == 1)
        #expect(try await world.state(id).synced == 0)
    }

    @Test(arguments: ["create", "write", "sync", "publish"])
    func `a full disk is reported, and the upload continues when there is space`(_ call: String) async throws {
        let world = try await World()
        if call == "create" {
            world.files.fault.withLock { $0 = (call, .full) }
            #expect(await world.code { _ = try await world.begin(3) } == .attachmentStorageFull)
            return
        }
        let id = try await world.begin(3)
        world.files.fault.withLock { $0 = (call, .full) }
        #expect(await world.code { try await world.append(id, ["abc"], at: 0, isLast: true) } == .attachmentStorageFull)
        world.files.fault.withLock { $0 = nil }
        let place = try await world.state(id).synced
        #expect(place == (call == "publish" ? 3 : 0))
        try await world.append(id, place == 3 ? [] : ["abc"], at: place, isLast: true)
        #expect(try await world.content(id) == "abc")
    }

    @Test func `the required free space stays free`() async throws {
        let world = try await World { ($0.freeBytes, $0.syncBytes) = (1000, 2) }
        world.files.free.withLock { $0 = 1010 }
        #expect(await world.code { _ = try await world.begin(11) } == .attachmentStorageFull)
        let id = try await world.begin(10)
        world.files.free.withLock { $0 = 999 }
        #expect(await world.code { try await world.append(id, ["abc", "def"], at: 0) } == .attachmentStorageFull)
        #expect(try await world.state(id).synced == 3, "the received bytes are kept")
        world.files.free.withLock { $0 = 1000 }
        #expect(try await world.append(id, ["defghij"], at: 3, isLast: true).isComplete)
    }

    @Test func `a wrong offset harms nothing, and more than the length ends the upload`() async throws {
        let world = try await World()
        let id = try await world.begin(5)
        try await world.append(id, ["abc"], at: 0)
        let mismatch = await #expect(throws: UploadOffsetMismatch.self) { try await world.append(id, ["x"], at: 2) }
        #expect(mismatch?.attachment.synced == 3 && mismatch?.provided == 2)
        #expect(
            await world.code { try await world.append(id, ["d"], at: 3, isLast: true) } == .uploadLengthInconsistent)
        #expect(try await world.state(id).synced == 4, "fewer can go on")
        #expect(await world.code { try await world.append(id, ["ef"], at: 4) } == .uploadLengthInconsistent)
        #expect(await world.code { _ = try await world.state(id) } == .attachmentUnknown)
        #expect(try await world.files.listed().isEmpty)
    }

    @Test func `nothing of a body with a wrong digest is kept, for any length`() async throws {
        let world = try await World { $0.syncBytes = 1 }
        let id = try await world.begin(6)
        try await world.append(id, ["ab", "c"], at: 0, digest: sha("abc"))
        #expect(await world.code { try await world.append(id, ["de", "x"], at: 3, digest: sha("def")) } == .digestMismatch)
        #expect(try await world.state(id).synced == 3)
        // Nor of an interrupted body.
        await #expect(throws: CancellationError.self) {
            _ = try await world.attachments.append(
                to: id, of: world.owner, at: 3, contentDigest: self.sha("def"), isLast: false
            ) { upload in
                _ = try await upload.write(SomeBytes("d"))
                throw CancellationError()
            }
        }
        #expect(try await world.state(id).synced == 3)
        try await world.append(id, ["def"], at: 3, isLast: true, digest: sha("def"))
        #expect(try await world.content(id) == "abcdef")
    }

    @Test func `a complete attachment with a wrong digest is removed`() async throws {
        let world = try await World()
        let wrong = try await world.begin(3, digest: sha("abc"))
        #expect(await world.code { try await world.append(wrong, ["abx"], at: 0, isLast: true) } == .digestMismatch)
        #expect(await world.code { _ = try await world.state(wrong) } == .attachmentUnknown)
        let right = try await world.begin(3, digest: sha("abc"))
        #expect(try await world.append(right, ["abc"], at: 0, isLast: true).isComplete)
    }

    @Test func `an interrupted upload is kept to its last byte`() async throws {
        let world = try await World()
        let id = try await world.begin(10)
        await #expect(throws: CancellationError.self) {
            _ = try await world.attachments.append(
                to: id, of: world.owner, at: 0, contentDigest: nil, isLast: true
            ) { upload in
                _ = try await upload.write(SomeBytes("abc"))
                throw CancellationError()
            }
        }
        #expect(try await world.state(id).synced == 3)
    }

    @Test func `the newest request continues an upload, and the earlier one first writes its bytes to disk`() async throws {
        let world = try await World()
        let id = try await world.begin(10)
        let (begun, begins) = AsyncStream.makeStream(of: Void.self)
        let older = Task {
            try await world.attachments.append(to: id, of: world.owner, at: 0, contentDigest: nil, isLast: true) { upload in
                _ = try await upload.write(SomeBytes("abc"))
                begins.yield()
                try await Task.sleep(for: .seconds(600))
            }
        }
        for await _ in begun { break }
        #expect(try await world.state(id).synced == 3)
        let refusal = await #expect(throws: Refusal.self) { try await older.value }
        #expect(refusal?.code == .uploadTakenOver)
        try await world.append(id, ["defghij"], at: 3, isLast: true)
        #expect(try await world.content(id) == "abcdefghij")
    }

    @Test func `an upload that moves to another home is not changed here`() async throws {
        let world = try await World()
        let id = try await world.begin(3)
        let former = Attachments(
            records: world.fixture.store, files: world.files, limits: AttachmentLimits(),
            time: TimeSource { StoreFixture.start }, random: .system, isOpen: { _ in false })
        let refusal = await #expect(throws: Refusal.self) {
            try await former.append(to: id, of: world.owner, at: 0, contentDigest: nil, isLast: true) { upload in
                _ = try await upload.write(SomeBytes("abc"))
            }
        }
        #expect(refusal?.code == .storageUnavailable && refusal?.retryAfterSeconds == 1)
        await #expect(throws: Refusal.uploadMoves) { try await former.end(id, by: world.owner) }
        #expect(try await former.state(id, of: world.owner).synced == 0)
        #expect(try await world.append(id, ["abc"], at: 0, isLast: true).isComplete)
    }

    @Test func `an upload that ends because its shard moves is refused for that, and keeps its bytes`() async throws {
        let world = try await World()
        let id = try await world.begin(10)
        let (begun, begins) = AsyncStream.makeStream(of: Void.self)
        let upload = Task {
            try await world.attachments.append(to: id, of: world.owner, at: 0, contentDigest: nil, isLast: true) { upload in
                _ = try await upload.write(SomeBytes("abc"))
                begins.yield()
                try await Task.sleep(for: .seconds(600))
            }
        }
        for await _ in begun { break }
        await world.attachments.endUploads(in: Shard(of: id))
        await #expect(throws: Refusal.uploadMoves) { try await upload.value }
        #expect(try await world.state(id).synced == 3)
    }

    @Test func `deleting ends a transfer, and removes its data`() async throws {
        let world = try await World()
        let id = try await world.begin(10)
        let (begun, begins) = AsyncStream.makeStream(of: Void.self)
        let older = Task {
            try await world.attachments.append(to: id, of: world.owner, at: 0, contentDigest: nil, isLast: true) { upload in
                _ = try await upload.write(SomeBytes("abc"))
                begins.yield()
                try await Task.sleep(for: .seconds(600))
            }
        }
        for await _ in begun { break }
        try await world.attachments.end(id, by: world.owner)
        await #expect(throws: Refusal.self) { try await older.value }
        #expect(try await world.files.listed().isEmpty)
    }

    @Test func `an upload that is removed as it completes leaves no file`() async throws {
        let world = try await World()
        let id = try await world.begin(3)
        let serial = try await world.state(id).serial
        let store = world.fixture.store
        world.files.onPublish.withLock { $0 = { _ = try await store.removeAttachment(serial) } }
        #expect(await world.code { try await world.append(id, ["abc"], at: 0, isLast: true) } == .attachmentUnknown)
        #expect(try await world.files.listed().isEmpty)
    }

    @Test func `senders of another app have no access`() async throws {
        let world = try await World()
        let begun = try await world.attachments.begin(
            world.senders, length: 3, digest: nil, readers: [.senders], lifetimeSeconds: 60, idempotency: nil)
        let elsewhere = AttachmentUser(app: AppSerial(99), principal: .senders)
        #expect(await world.code { _ = try await world.attachments.state(begun.id, of: elsewhere) } == .attachmentUnknown)
        #expect(await world.code { try await world.attachments.end(begun.id, by: elsewhere) } == .attachmentUnknown)
        #expect(try await world.attachments.state(begun.id, of: world.senders).id == begun.id)
    }

    @Test func `of many concurrent uploads one works, and the others receive an error`() async throws {
        let turns = UploadTurns()
        let inside = Inside()
        let notified = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 { group.addTask { await inside.work(turns) } }
            return await group.reduce(0) { $0 + ($1 ? 0 : 1) }
        }
        #expect(inside.count.withLock { $0.most } == 1 && notified < 50)
        #expect(turns.count == 0)
    }

    @Test func `uploads that meet a condition are ended, and others are not`() async throws {
        let turns = UploadTurns()
        let ids = [UInt64(1), 2].map { AttachmentID(Bytes16(high: 1, low: $0)) }
        await withTaskGroup(of: Void.self) { group in
            for id in ids {
                group.addTask {
                    try? await turns.take(id) { turn in while turn.refusal == nil { await Task.yield() } }
                }
            }
            while turns.count < 2 { await Task.yield() }
            await turns.end { $0 == ids[0] }
            #expect(turns.count == 1)
            await turns.end { _ in true }
            #expect(turns.count == 0)
        }
    }

    @Test func `no other device continues, fetches or ends it`() async throws {
        let world = try await World()
        let id = try await world.begin(3)
        let stranger = AttachmentUser(app: world.owner.app, principal: .device(DeviceSerial(99)))
        let elsewhere = AttachmentUser(app: AppSerial(99), principal: .senders)
        for user in [stranger, elsewhere, world.senders] {
            #expect(await world.code { _ = try await world.attachments.state(id, of: user) } == .attachmentUnknown)
            #expect(await world.code { try await world.attachments.end(id, by: user) } == .attachmentUnknown)
            let appended = await world.code {
                _ = try await world.attachments.append(
                    to: id, of: user, at: 0, contentDigest: nil, isLast: true
                ) { _ in }
            }
            #expect(appended == .attachmentUnknown)
        }
        try await world.append(id, ["abc"], at: 0, isLast: true)
        for user in [stranger, elsewhere] {
            #expect(await world.code { _ = try await world.attachments.open(id, for: user) } == .attachmentUnknown)
            #expect(await world.code { try await world.attachments.end(id, by: user) } == .attachmentUnknown)
        }
        #expect(try await world.content(id) == "abc")
        _ = try await world.attachments.open(id, for: world.owner)
    }

    @Test func `concurrent transfers are limited for each owner and in total`() async throws {
        let world = try await World { ($0.transfersOfDevice, $0.transfersOfSenders, $0.transfers) = (2, 3, 4) }
        let id = try await world.begin(0)
        try await world.append(id, [], at: 0, isLast: true)
        var held: [Transfer] = []
        for _ in 0..<2 { held.append(try await world.attachments.open(id, for: world.owner).transfer) }
        #expect(await world.code { _ = try await world.attachments.open(id, for: world.owner) } == .rateLimited)
        let other = try await world.begin(1)
        #expect(await world.code { try await world.append(other, ["x"], at: 0) } == .rateLimited)
        for _ in 0..<2 { held.append(try await world.attachments.open(id, for: world.senders).transfer) }
        #expect(await world.code { _ = try await world.attachments.open(id, for: world.senders) } == .overloaded)
        held.removeFirst()
        held.append(try await world.attachments.open(id, for: world.senders).transfer)
        held.removeAll()
        try await world.append(other, ["x"], at: 0, isLast: true)
    }

    @Test func `the devices of a user have a quota of the transfers, and so has an app`() async throws {
        let world = try await World { ($0.transfersOfUser, $0.transfersOfApp) = (3, 5) }
        let id = try await world.begin(0)
        try await world.append(id, [], at: 0, isLast: true)
        let ada = try #require(UserID("ada"))
        var users: [AttachmentUser] = [world.owner]
        for number in 1...2 as ClosedRange<UInt8> {
            let new = NewDevice(DeviceID(Bytes16(high: 8, low: UInt64(number))), app: try StoreFixture.appID)
            let device = try #require(try await world.fixture.insert(new, secret: [8, number]))
            users.append(AttachmentUser(app: device.app, principal: .device(device.serial)))
        }
        for case .device(let serial) in users.prefix(2).map(\.principal) {
            _ = try await world.fixture.store.changeRegistration(of: serial, at: StoreFixture.start) { current in
                var changed = current
                changed.user = ada
                return .becomes(changed)
            }
        }
        // Each has one of its own to fetch.
        var own: [AttachmentID] = []
        for user in users {
            let upload = try await world.attachments.begin(
                user, length: 0, digest: nil, readers: [.senders], lifetimeSeconds: 60, idempotency: nil)
            _ = try await world.attachments.append(to: upload.id, of: user, at: 0, contentDigest: nil, isLast: true) { _ in }
            own.append(upload.id)
        }
        func code(_ place: Int) async -> ErrorCode? {
            await world.code { _ = try await world.attachments.open(own[place], for: users[place]) }
        }
        var held: [Transfer] = []
        for place in [0, 1, 0] { held.append(try await world.attachments.open(own[place], for: users[place]).transfer) }
        #expect(await code(1) == .rateLimited, "the user has three")
        held.append(try await world.attachments.open(own[2], for: users[2]).transfer)
        held.append(try await world.attachments.open(id, for: world.senders).transfer)
        #expect(await world.code { _ = try await world.attachments.open(id, for: world.senders) } == .rateLimited)
        #expect(await code(2) == .rateLimited, "the app has five")
        held.removeLast()
        #expect(await code(2) == nil)
        held.removeAll()
        for place in 0..<3 { #expect(await code(place) == nil) }
    }

    @Test func `an upload ends if its whole length does not fit any more, and keeps the received data`() async throws {
        let world = try await World {
            ($0.userBytes, $0.appBytes, $0.leastCharge, $0.aheadBytes) = (100, 100, 1, 10)
        }
        let first = try await world.begin(90)
        let ten = String(repeating: "x", count: 10)
        try await world.append(first, [ten, ten], at: 0)
        #expect(try await world.state(first).synced == 20)
        // Another upload takes the space that the first one needs for the rest.
        @Sendable func take() async throws -> AttachmentID {
            let other = try await world.attachments.begin(
                world.senders, length: 50, digest: nil, readers: [.senders], lifetimeSeconds: 60, idempotency: nil)
            _ = try await world.attachments.append(
                to: other.id, of: world.senders, at: 0, contentDigest: nil, isLast: true
            ) { _ = try await $0.write(SomeBytes(String(repeating: "y", count: 50))) }
            return other.id
        }
        let other = try await take()
        #expect(await world.code { try await world.append(first, [ten], at: 20) } == .quotaExceeded)
        #expect(try await world.state(first).synced == 20)
        try await world.attachments.end(other, by: world.senders)
        // Also within a body; nothing is kept of a body whose digest is checked at its end.
        let digest = Array(SHA256.hash(data: Array((ten + ten).utf8)))
        for (digest, synced) in [(digest, 20), (nil, 30)] as [([UInt8]?, Int64)] {
            let taken = Mutex<AttachmentID?>(nil)
            let code = await world.code {
                _ = try await world.attachments.append(
                    to: first, of: world.owner, at: 20, contentDigest: digest, isLast: false
                ) { upload in
                    _ = try await upload.write(SomeBytes(ten))
                    let other = try await take()
                    taken.withLock { $0 = other }
                    _ = try await upload.write(SomeBytes(ten))
                }
            }
            #expect(code == .quotaExceeded)
            #expect(try await world.state(first).synced == synced)
            try await world.attachments.end(try #require(taken.withLock { $0 }), by: world.senders)
        }
        try await world.append(first, Array(repeating: ten, count: 6), at: 30, isLast: true)
        #expect(try await world.content(first).count == 90)
    }

    @Test func `files without a row are swept, and those with one stay`() async throws {
        let world = try await World()
        let kept = try await world.begin(3)
        try await world.files.create(AttachmentID(Bytes16(high: 7, low: 7)))
        try await world.files.create(AttachmentID(Bytes16(high: 8, low: 7)))
        try await world.files.publish(AttachmentID(Bytes16(high: 8, low: 7)))
        #expect(try await !world.orphansGone)
        #expect(try await world.files.listed() == [kept])
    }

    @Test func `an upload whose file is missing no longer exists`() async throws {
        let world = try await World()
        let id = try await world.begin(3)
        try await world.files.remove([id])
        #expect(await world.code { try await world.append(id, ["abc"], at: 0) } == .attachmentUnknown)
        #expect(await world.code { _ = try await world.state(id) } == .attachmentUnknown)
    }

    @Test func `a refused request leaves no file`() async throws {
        let world = try await World { ($0.uploadsOfDevice, $0.fileBytes) = (1, 100) }
        #expect(await world.code { _ = try await world.begin(101) } == .attachmentTooLarge)
        #expect(try await world.files.listed().isEmpty)
        let id = try await world.begin(100)
        #expect(await world.code { _ = try await world.begin(1) } == .uploadsTooMany)
        #expect(try await world.files.listed() == [id])
    }
}
