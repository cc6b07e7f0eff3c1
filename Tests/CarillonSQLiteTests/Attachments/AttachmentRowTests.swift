import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import Testing

@testable import CarillonSQLite

/// The rows beside those of attachments.
@Suite(.timeLimit(.minutes(1)))
struct AttachmentRowTests {
    private let start = StoreFixture.start

    private func wish(
        _ number: UInt64, _ fixture: StoreFixture, by owner: Party, length: Int64 = 100, readers: [Party] = [.senders],
        _ limits: AttachmentLimits = .init()
    ) -> AttachmentWish {
        AttachmentWish(
            proposed: AttachmentID(Bytes16(high: 3, low: number)),
            owner: AttachmentUser(app: fixture.device.app, party: owner), length: length, digest: nil, readers: readers,
            lifetimeSeconds: 50, idempotency: nil, limits: limits)
    }

    @discardableResult
    private func add(_ wish: AttachmentWish, _ fixture: StoreFixture) async throws -> AttachmentSerial {
        guard case .added(let attachment) = try await fixture.store.addAttachment(wish, at: start) else {
            throw StoreFixture.Missing()
        }
        return attachment.serial
    }

    private func addDevice(_ number: UInt64, _ fixture: StoreFixture) async throws -> DeviceSerial {
        let new = NewDevice(DeviceID(Bytes16(high: 8, low: number)), app: try StoreFixture.appID)
        guard let device = try await fixture.insert(new, secret: [8, UInt8(number)]) else { throw StoreFixture.Missing() }
        return device.serial
    }

    // MARK: Parties that are gone

    /// The devices of `attachment_party_gone`; 0 is the app.
    private func gone(_ store: SQLiteStore) async throws -> [Int64] {
        try await store.read { db in
            try Int64.fetchAll(db, sql: "SELECT device FROM attachment_party_gone ORDER BY device")
        }
    }

    @Test func `a device leaves a row if it has attachments or may fetch some`() async throws {
        let fixture = try await StoreFixture(StoreKind.memory)
        let store = fixture.sqlite
        let reader = try await addDevice(1, fixture)
        let none = try await addDevice(2, fixture)
        let owner = fixture.device.serial
        try await add(wish(1, fixture, by: .device(owner), readers: [.device(reader)]), fixture)
        try await add(wish(2, fixture, by: .senders), fixture)
        for device in [none, reader, owner] { _ = try await store.deleteDevice(device, at: start) }
        #expect(try await gone(store) == [owner.rawValue, reader.rawValue])
        let swept = try await store.removeEndedAttachments(at: start, limit: 10)
        #expect(swept.removed.count == 1)
        while try await !store.removeEndedAttachments(at: start, limit: 10).isDone {}
        #expect(try await gone(store) == [])
        #expect(try await store.rowCount(of: "attachment") == 1)
    }

    @Test func `an app leaves a row if it has attachments`() async throws {
        let fixture = try await StoreFixture(StoreKind.memory)
        let store = fixture.sqlite
        let other = try #require(AppID("com.example.other"))
        _ = try await store.createApp(other, at: start)
        _ = try await store.deleteApp(other, at: start)
        #expect(try await gone(store) == [])
        try await add(wish(1, fixture, by: .senders), fixture)
        _ = try await store.deleteApp(fixture.device.appID, at: start)
        #expect(try await gone(store) == [0])
        while try await !store.continueDeletions(at: start, limit: 1).isDone {}
        while try await !store.removeEndedAttachments(at: start, limit: 10).isDone {}
        #expect(try await gone(store) == [])
        #expect(try await store.rowCount(of: "attachment") == 0)
    }
}
