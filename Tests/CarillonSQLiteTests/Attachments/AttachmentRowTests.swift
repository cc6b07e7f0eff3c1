import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The rows beside those of attachments.
@Suite(.timeLimit(.minutes(5)))
struct AttachmentRowTests {
    private let start = StoreFixture.start

    private func request(
        _ number: UInt64, _ fixture: StoreFixture, by owner: AttachmentPrincipal, length: Int64 = 100,
        readers: [AttachmentPrincipal] = [.senders],
        _ limits: AttachmentLimits = .init()
    ) -> AttachmentRequest {
        AttachmentRequest(
            proposed: AttachmentID(Bytes16(high: 3, low: number)),
            owner: AttachmentUser(app: fixture.device.app, principal: owner), length: length, digest: nil, readers: readers,
            lifetimeSeconds: 50, idempotency: nil, limits: limits)
    }

    @discardableResult
    private func add(_ request: AttachmentRequest, _ fixture: StoreFixture) async throws -> AttachmentSerial {
        guard case .added(let attachment) = try await fixture.store.addAttachment(request, at: start) else {
            throw StoreFixture.Missing()
        }
        return attachment.serial
    }

    private func addDevice(_ number: UInt64, _ fixture: StoreFixture) async throws -> DeviceSerial {
        let new = NewDevice(DeviceID(Bytes16(high: 8, low: number)), app: try StoreFixture.appID)
        guard let device = try await fixture.insert(new, secret: [8, UInt8(number)]) else { throw StoreFixture.Missing() }
        return device.serial
    }

    // MARK: Totals

    /// The use of each quota, beside the sums of the rows.
    private func expectTotals(_ store: SQLiteStore, _ expected: [String: Int64]) async throws {
        let (counted, rows) = try await store.read { db in
            func totals(_ sql: String) throws -> [String: Int64] {
                let rows = try Row.fetchAll(db, sql: sql).map { row -> (String, Int64) in (row[0], row[1]) }
                return Dictionary(uniqueKeysWithValues: rows)
            }
            let counted = try totals(
                "SELECT substr(name, 18), value FROM counter WHERE name LIKE 'attachment_bytes:%'")
            let rows = try totals(
                """
                SELECT allowance, sum(charged) FROM attachment GROUP BY allowance
                UNION ALL SELECT '', sum(charged) FROM attachment GROUP BY app
                """)
            return (counted, rows)
        }
        #expect(counted == expected)
        #expect(rows == expected)
    }

    private func sign(_ claim: UserClaim, _ device: DeviceSerial, _ store: SQLiteStore) async throws {
        let result = try await store.changeRegistration(of: device, at: start) { current in
            .reports(current.profile, confirms: false, user: claim)
        }
        _ = try #require(result).get()
    }

    /// Each file counts as at least 10, and as 100 more than the received bytes.
    private var limits: AttachmentLimits {
        var limits = AttachmentLimits()
        (limits.userBytes, limits.appBytes, limits.leastCharge, limits.aheadBytes) = (1000, 20_000, 10, 100)
        return limits
    }

    @Test func `totals follow an upload that grows, becomes whole and is removed`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, limits) = (fixture.sqlite, limits)
        let device = AttachmentPrincipal.device(fixture.device.serial)
        let own = "d\(fixture.device.serial.rawValue)"
        let upload = try await add(request(1, fixture, by: device, length: 900, limits), fixture)
        let empty = try await add(request(2, fixture, by: .senders, length: 0, limits), fixture)
        try await expectTotals(store, ["": 110, own: 100, "s": 10])
        #expect(try await store.reserve(upload, received: 300, limits) == .reserved)
        try await expectTotals(store, ["": 410, own: 400, "s": 10])
        #expect(try await store.reserve(upload, received: 300, limits) == .reserved)
        let other = try await add(request(3, fixture, by: device, length: 90, limits), fixture)
        try await expectTotals(store, ["": 500, own: 490, "s": 10])
        var fewer = limits
        fewer.userBytes = 900
        #expect(try await store.reserve(upload, received: 350, fewer) == .overUser(limit: 900))
        try await expectTotals(store, ["": 450, own: 440, "s": 10])
        #expect(try await store.noteSynced(upload, upTo: 350, expiresAt: start))
        for attachment in [upload, empty, other] {
            #expect(try await store.completeAttachment(attachment, expiresAt: start))
            #expect(try await store.completeAttachment(attachment, expiresAt: start) == false)
        }
        try await expectTotals(store, ["": 1000, own: 990, "s": 10])
        #expect(try await store.removeAttachment(other))
        #expect(try await store.removeAttachment(other) == false)
        try await expectTotals(store, ["": 910, own: 900, "s": 10])
        #expect(try await store.attachmentReceived(empty, by: .senders))
        try await expectTotals(store, ["": 900, own: 900])
        #expect(try await store.removeAttachment(upload))
        try await expectTotals(store, [:])
    }

    @Test func `totals follow attachments that expire`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, limits) = (fixture.sqlite, limits)
        let other = try await addDevice(1, fixture)
        let owners: [AttachmentPrincipal] = [
            .device(other), .device(fixture.device.serial), .device(fixture.device.serial), .senders,
        ]
        for (number, owner) in owners.enumerated() {
            try await add(request(UInt64(number), fixture, by: owner, limits), fixture)
        }
        let own = "d\(fixture.device.serial.rawValue)"
        try await expectTotals(store, ["": 400, own: 200, "d\(other.rawValue)": 100, "s": 100])
        let late = start.adding(seconds: 10 * limits.unfinishedSeconds)
        let swept = try await store.removeEndedAttachments(at: late, limit: 3)
        #expect(swept.removed.count == 3)
        let left = try await store.read { db in
            try Row.fetchAll(db, sql: "SELECT allowance, charged FROM attachment").map { row -> (String, Int64) in
                (row[0], row[1])
            }
        }
        #expect(left.count == 1)
        for (allowance, charged) in left { try await expectTotals(store, ["": charged, allowance: charged]) }
        while try await !store.removeEndedAttachments(at: late, limit: 3).isDone {}
        try await expectTotals(store, [:])
    }

    @Test func `totals follow attachments whose owner or last reader is deleted`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, limits) = (fixture.sqlite, limits)
        func sweep() async throws { while try await !store.removeEndedAttachments(at: start, limit: 1).isDone {} }
        let (owner, reader) = (try await addDevice(1, fixture), try await addDevice(2, fixture))
        let user = try #require(UserID("ada"))
        try await sign(.signedIn(user), fixture.device.serial, store)
        let device = AttachmentPrincipal.device(fixture.device.serial)
        try await add(request(1, fixture, by: device, limits), fixture)
        let whole = try await add(request(2, fixture, by: device, limits), fixture)
        #expect(try await store.completeAttachment(whole, expiresAt: start.adding(seconds: 60)))
        try await add(request(3, fixture, by: .device(owner), limits), fixture)
        try await add(request(4, fixture, by: .senders, readers: [.device(reader)], limits), fixture)
        try await add(request(5, fixture, by: .senders, readers: [device], limits), fixture)
        try await add(request(6, fixture, by: .senders, limits), fixture)
        let own = "d\(owner.rawValue)"
        try await expectTotals(store, ["": 600, "uada": 200, own: 100, "s": 300])
        try await sign(.signedOut, fixture.device.serial, store)
        try await expectTotals(store, ["": 600, "uada": 200, own: 100, "s": 300])
        try await sweep()
        // The unfinished upload of the former user, and the file for the former user alone.
        try await expectTotals(store, ["": 400, "uada": 100, own: 100, "s": 200])
        _ = try await store.deleteDevice(reader, at: start)
        try await sweep()
        try await expectTotals(store, ["": 300, "uada": 100, own: 100, "s": 100])
        _ = try await store.deleteDevice(owner, at: start)
        try await sweep()
        try await expectTotals(store, ["": 200, "uada": 100, "s": 100])
        _ = try await store.deleteApp(fixture.device.appID, at: start)
        try await sweep()
        try await expectTotals(store, [:])
    }

    @Test func `two uploads of one quota in one commit count both`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, now) = (fixture.sqlite, start)
        let requests = [UInt64(1), 2].map { request($0, fixture, by: .senders, limits) }
        let failing = request(3, fixture, by: .senders, limits)
        let gate = Gate()
        async let before: Void = store.group.run { _ in gate.pass() }
        await gate.reached()
        let works: [@Sendable () async throws -> Void] = [
            { _ = try await store.addAttachment(requests[0], at: now) },
            {
                try await store.group.run { db in
                    _ = try AttachmentTable(db).add(failing, at: now)
                    throw StoreFault(.full, "its own")
                }
            },
            { _ = try await store.addAttachment(requests[1], at: now) },
        ]
        let results = await together(works) { gate.open() }
        try await before
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
        try await expectTotals(store, ["": 200, "s": 200])
    }

    @Test func `a change of the totals runs as many statements as the documentation lists`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, limits) = (fixture.sqlite, limits)
        let device = AttachmentPrincipal.device(fixture.device.serial)
        func count(_ work: () async throws -> Void) async throws -> Int {
            try await store.tracing(work).statements.count { sql in
                sql.contains("counter") && !sql.hasPrefix("SELECT")
            }
        }
        var uploads: [AttachmentSerial] = []
        for (number, owner) in [device, device, .senders].enumerated() {
            let proposed = request(UInt64(number), fixture, by: owner, length: 900, limits)
            let new = try await count {
                let serial = try await add(proposed, fixture)
                uploads.append(serial)
            }
            #expect(new == 2)
        }
        let (first, second, third) = (uploads[0], uploads[1], uploads[2])
        let more = try await count { _ = try await store.reserve(first, received: 300, limits) }
        #expect(more == 2)
        let same = try await count { _ = try await store.reserve(first, received: 300, limits) }
        #expect(same == 0)
        let one = try await count { _ = try await store.removeAttachment(first) }
        #expect(one == 2, "both rows stay")
        let last = try await count { _ = try await store.removeAttachment(second) }
        #expect(last == 3, "the row of the quota is removed")
        let all = try await count { _ = try await store.removeAttachment(third) }
        #expect(all == 4)
    }

    @Test func `the end of a device or an app leaves its attachments by one statement`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let store = fixture.sqlite
        try await add(request(1, fixture, by: .device(fixture.device.serial)), fixture)
        try await add(request(2, fixture, by: .senders), fixture)
        func count(_ work: () async throws -> Void) async throws -> Int {
            Set(try await store.tracing(work).statements).count { $0.contains("attachment") }
        }
        let device = try await count { _ = try await store.deleteDevice(fixture.device.serial, at: start) }
        #expect(device == 1)
        let app = try await count { _ = try await store.deleteApp(fixture.device.appID, at: start) }
        #expect(app == 1)
    }

    // MARK: Removed parties

    /// The devices of `attachment_party_gone`; 0 is the app.
    private func gone(_ store: SQLiteStore) async throws -> [Int64] {
        try await store.read { db in
            try Int64.fetchAll(db, sql: "SELECT device FROM attachment_party_gone ORDER BY device")
        }
    }

    @Test func `a device leaves a row if it has attachments or may fetch some`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let store = fixture.sqlite
        let reader = try await addDevice(1, fixture)
        let none = try await addDevice(2, fixture)
        let owner = fixture.device.serial
        try await add(request(1, fixture, by: .device(owner), readers: [.device(reader)]), fixture)
        try await add(request(2, fixture, by: .senders), fixture)
        for device in [none, reader, owner] { _ = try await store.deleteDevice(device, at: start) }
        #expect(try await gone(store) == [owner.rawValue, reader.rawValue])
        let swept = try await store.removeEndedAttachments(at: start, limit: 10)
        #expect(swept.removed.count == 1)
        while try await !store.removeEndedAttachments(at: start, limit: 10).isDone {}
        #expect(try await gone(store) == [])
        #expect(try await store.rowCount(of: "attachment") == 1)
    }

    @Test func `an app leaves a row if it has attachments`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let store = fixture.sqlite
        let other = try #require(AppID("com.example.other"))
        _ = try await store.createApp(other, at: start)
        _ = try await store.deleteApp(other, at: start)
        #expect(try await gone(store) == [])
        try await add(request(1, fixture, by: .senders), fixture)
        _ = try await store.deleteApp(fixture.device.appID, at: start)
        #expect(try await gone(store) == [0])
        while try await !store.continueDeletions(at: start, limit: 1).isDone {}
        while try await !store.removeEndedAttachments(at: start, limit: 10).isDone {}
        #expect(try await gone(store) == [])
        #expect(try await store.rowCount(of: "attachment") == 0)
    }
}
