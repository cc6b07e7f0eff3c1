import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let attachments: [StoreCase] = [
        StoreCase("an attachment grows, becomes complete, and is removed with its last reader", attachmentLives),
        StoreCase("an attachment expires at its moment, and returns the space that it reserved", attachmentExpires),
        StoreCase("concurrent uploads are limited: of a device, and of all senders", uploadsAreBounded),
        StoreCase("bytes are limited: of a device and of an app, and a file without bytes has a minimum", bytesAreBounded),
        StoreCase("devices of one user use one quota", usersShare),
        StoreCase("an unfinished upload counts the received and the next bytes", unfinishedCountLittle),
        StoreCase("the unfinished uploads of one user reserve a limited amount", reservationsAreBounded),
        StoreCase("the same request begins one attachment, and another with its key is refused", beginningIsIdempotent),
        StoreCase("the uploads of a device are removed with it, and so are the files for it alone", partyGoes),
        StoreCase("the attachments of an app are removed with it, in steps", appGoes),
        StoreCase("which attachments are known", attachmentsAreKnown),
    ]
}

private func id(_ number: UInt64) -> AttachmentID { AttachmentID(Bytes16(high: 3, low: number)) }

private func request(
    _ number: UInt64, _ fixture: StoreFixture, by principal: AttachmentPrincipal? = nil, length: Int64 = 100,
    readers: [AttachmentPrincipal] = [.senders],
    idempotency: (key: [UInt8], fingerprint: [UInt8])? = nil, _ limits: AttachmentLimits = .init()
) -> AttachmentRequest {
    AttachmentRequest(
        proposed: id(number),
        owner: AttachmentUser(app: fixture.device.app, principal: principal ?? .device(fixture.device.serial)),
        length: length, digest: [7], readers: readers, lifetimeSeconds: 50, idempotency: idempotency, limits: limits)
}

private func add(
    _ request: AttachmentRequest, _ fixture: StoreFixture, at now: Timestamp = start
) async throws -> CarillonCore.Attachment {
    guard case .added(let attachment) = try await fixture.store.addAttachment(request, at: now) else {
        throw StoreFixture.Missing()
    }
    return attachment
}

private func other(_ number: UInt64, _ fixture: StoreFixture) async throws -> Device {
    let new = NewDevice(DeviceID(Bytes16(high: 8, low: number)), app: try StoreFixture.appID)
    return try #require(try await fixture.insert(new, secret: [8, UInt8(number)]))
}

private func attachmentLives(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    let reader = AttachmentPrincipal.device(try await other(1, fixture).serial)
    let begun = try await add(request(1, fixture, readers: [reader, reader, .senders]), fixture)
    #expect(begun.expiresAt == start.adding(seconds: AttachmentLimits().unfinishedSeconds))
    #expect(try await store.attachment(id(1)) == begun)
    #expect(try await store.attachment(id(2)) == nil)
    let later = start.adding(seconds: 90_000)
    #expect(try await store.noteSynced(begun.serial, upTo: 60, expiresAt: later))
    #expect(try await store.noteSynced(begun.serial, upTo: 50, expiresAt: later))
    var known = try #require(try await store.attachment(id(1)))
    #expect(known.synced == 60 && known.expiresAt == later && !known.isComplete, "an offset never goes back")
    #expect(try await store.completeAttachment(begun.serial, expiresAt: later.adding(seconds: 1)))
    known = try #require(try await store.attachment(id(1)))
    #expect(known.synced == 100 && known.isComplete && known.expiresAt == later.adding(seconds: 1))
    #expect(known.digest == [7] && known.lifetimeSeconds == 50 && known.length == 100)
    #expect(try await !store.completeAttachment(begun.serial, expiresAt: later))
    #expect(try await !store.noteSynced(begun.serial, upTo: 70, expiresAt: later))
    #expect(try await store.isReader(reader, of: begun.serial))
    #expect(try await store.isReader(.senders, of: begun.serial))
    #expect(try await !store.isReader(.device(fixture.device.serial), of: begun.serial))
    #expect(try await !store.attachmentReceived(begun.serial, by: .device(fixture.device.serial)))
    #expect(try await !store.attachmentReceived(begun.serial, by: reader))
    #expect(try await !store.isReader(reader, of: begun.serial))
    #expect(try await !store.attachmentReceived(begun.serial, by: reader), "a reader counts once")
    #expect(try await store.attachment(id(1)) != nil)
    #expect(try await store.attachmentReceived(begun.serial, by: .senders))
    #expect(try await store.attachment(id(1)) == nil)
    #expect(try await !store.removeAttachment(begun.serial))
    #expect(try await !store.noteSynced(begun.serial, upTo: 70, expiresAt: later))
}

private func attachmentExpires(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    var limits = AttachmentLimits()
    limits.userBytes = 200_000
    let begun = try await add(request(1, fixture, length: 150_000, limits), fixture)
    #expect(
        try await store.addAttachment(request(2, fixture, length: 60_000, limits), at: start) == .overUser(limit: 200_000))
    let end = begun.expiresAt
    let before = Timestamp(milliseconds: end.milliseconds - 1)
    #expect(try await store.attachment(id(1)) != nil)
    #expect(try await store.attachment(id(1)) != nil, "as long as it is not removed")
    var swept = try await store.removeEndedAttachments(at: before, limit: 10)
    #expect(swept.removed.isEmpty && swept.isDone)
    swept = try await store.removeEndedAttachments(at: end, limit: 10)
    #expect(swept.removed == [id(1)] && swept.isDone)
    #expect(try await store.attachment(id(1)) == nil)
    _ = try await add(request(2, fixture, length: 150_000, limits), fixture, at: end)
    for number in 3...5 { _ = try await add(request(UInt64(number), fixture, by: .senders), fixture, at: end) }
    let late = end.adding(seconds: limits.unfinishedSeconds)
    swept = try await store.removeEndedAttachments(at: late, limit: 3)
    #expect(swept.removed.count == 3 && !swept.isDone)
    swept = try await store.removeEndedAttachments(at: late, limit: 3)
    #expect(swept.removed.count == 1 && swept.isDone)
}

private func uploadsAreBounded(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    var limits = AttachmentLimits()
    (limits.uploadsOfDevice, limits.uploadsOfSenders) = (2, 3)
    let first = try await add(request(1, fixture, limits), fixture)
    _ = try await add(request(2, fixture, limits), fixture)
    #expect(try await fixture.store.addAttachment(request(3, fixture, limits), at: start) == .tooManyUploads(limit: 2))
    let neighbour = AttachmentPrincipal.device(try await other(1, fixture).serial)
    _ = try await add(request(3, fixture, by: neighbour, limits), fixture)
    #expect(try await fixture.store.completeAttachment(first.serial, expiresAt: first.expiresAt))
    _ = try await add(request(4, fixture, limits), fixture)
    for number in 5...7 { _ = try await add(request(UInt64(number), fixture, by: .senders, limits), fixture) }
    let more = try await fixture.store.addAttachment(request(8, fixture, by: .senders, limits), at: start)
    #expect(more == .tooManyUploads(limit: 3))
}

private func bytesAreBounded(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    var limits = AttachmentLimits()
    (limits.userBytes, limits.appBytes, limits.leastCharge) = (1000, 1500, 100)
    let first = try await add(request(1, fixture, length: 900, limits), fixture)
    #expect(try await store.addAttachment(request(2, fixture, length: 101, limits), at: start) == .overUser(limit: 1000))
    let empty = try await add(request(2, fixture, length: 0, limits), fixture)
    #expect(try await store.addAttachment(request(3, fixture, length: 0, limits), at: start) == .overUser(limit: 1000))
    let neighbour = AttachmentPrincipal.device(try await other(1, fixture).serial)
    #expect(
        try await store.addAttachment(request(3, fixture, by: neighbour, length: 501, limits), at: start)
            == .overApp(limit: 1500))
    _ = try await add(request(3, fixture, by: neighbour, length: 300, limits), fixture)
    // Senders have no other bound than their app.
    _ = try await add(request(4, fixture, by: .senders, length: 200, limits), fixture)
    let full = try await store.addAttachment(request(5, fixture, by: .senders, length: 0, limits), at: start)
    #expect(full == .overApp(limit: 1500))
    #expect(try await store.removeAttachment(empty.serial))
    #expect(try await store.removeAttachment(first.serial))
    _ = try await add(request(6, fixture, length: 1000, limits), fixture)
}

private func usersShare(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let second = try await other(1, fixture)
    let ada = try #require(UserID("ada"))
    for device in [fixture.device.serial, second.serial] {
        _ = try await fixture.store.changeRegistration(of: device, at: start) { current in
            var changed = current
            changed.user = ada
            return .becomes(changed)
        }
    }
    var limits = AttachmentLimits()
    limits.userBytes = 200_000
    _ = try await add(request(1, fixture, length: 150_000, limits), fixture)
    let more = request(2, fixture, by: .device(second.serial), length: 100_000, limits)
    #expect(try await fixture.store.addAttachment(more, at: start) == .overUser(limit: 200_000))
}

private func unfinishedCountLittle(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    var limits = AttachmentLimits()
    (limits.userBytes, limits.appBytes, limits.leastCharge, limits.aheadBytes) = (1000, 2000, 10, 50)
    let neighbour = AttachmentPrincipal.device(try await other(1, fixture).serial)
    let stranger = AttachmentPrincipal.device(try await other(2, fixture).serial)
    let first = try await add(request(1, fixture, length: 1000, limits), fixture)
    let second = try await add(request(2, fixture, by: neighbour, length: 1000, limits), fixture)
    // Without a byte of the two, nearly all is free for others.
    let third = try await add(request(3, fixture, by: stranger, length: 500, limits), fixture)
    for (received, upload) in [(400, first), (600, second), (350, third)] as [(Int64, CarillonCore.Attachment)] {
        #expect(try await store.reserve(upload.serial, received: received, limits) == .reserved)
        #expect(try await store.noteSynced(upload.serial, upTo: received, expiresAt: upload.expiresAt))
    }
    // 450, 650 and 400 are counted.
    #expect(
        try await store.addAttachment(request(4, fixture, by: .senders, length: 501, limits), at: start)
            == .overApp(limit: 2000))
    let small = try await add(request(4, fixture, by: .senders, length: 50, limits), fixture)
    // The whole of the first does not fit any more; the received bytes stay counted, and nothing else.
    #expect(try await store.reserve(first.serial, received: 420, limits) == .overApp(limit: 2000))
    // 420, 650, 400 and 50 are counted.
    #expect(
        try await store.addAttachment(request(5, fixture, by: .senders, length: 481, limits), at: start)
            == .overApp(limit: 2000))
    let exact = try await add(request(5, fixture, by: .senders, length: 480, limits), fixture)
    for upload in [third, small, exact] { #expect(try await store.removeAttachment(upload.serial)) }
    #expect(try await store.reserve(first.serial, received: 420, limits) == .reserved)
    #expect(try await store.reserve(first.serial, received: 1000, limits) == .reserved)
    #expect(try await store.completeAttachment(first.serial, expiresAt: first.expiresAt))
    #expect(try await store.reserve(first.serial, received: 1000, limits) == .gone)
    // 1000 and 650 are counted.
    let full = try await store.addAttachment(request(6, fixture, by: .senders, length: 351, limits), at: start)
    #expect(full == .overApp(limit: 2000))
    for upload in [first, second] { #expect(try await store.removeAttachment(upload.serial)) }
    _ = try await add(request(6, fixture, by: .senders, length: 2000, limits), fixture)
}

private func reservationsAreBounded(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    var limits = AttachmentLimits()
    (limits.userBytes, limits.appBytes, limits.leastCharge, limits.aheadBytes) = (100_000, 4000, 10, 100)
    let ada = try #require(UserID("ada"))
    let second = try await other(1, fixture)
    func share(_ device: DeviceSerial) async throws -> String? {
        try await store.attachmentQuotaName(of: AttachmentUser(app: fixture.device.app, principal: .device(device)))
    }
    #expect(try await share(second.serial) != share(fixture.device.serial))
    for device in [fixture.device.serial, second.serial] {
        _ = try await store.changeRegistration(of: device, at: start) { current in
            var changed = current
            changed.user = ada
            return .becomes(changed)
        }
    }
    #expect(try await share(second.serial) == share(fixture.device.serial))
    #expect(try await share(DeviceSerial(999)) == nil)
    let first = try await add(request(1, fixture, length: 900, limits), fixture)
    _ = try await add(request(2, fixture, by: .device(second.serial), length: 900, limits), fixture)
    let more = request(3, fixture, by: .device(second.serial), length: 900, limits)
    #expect(try await store.addAttachment(more, at: start) == .overReserved(limit: 200))
    let stranger = AttachmentPrincipal.device(try await other(2, fixture).serial)
    let apart = try await add(request(4, fixture, by: stranger, length: 900, limits), fixture)
    #expect(try await store.removeAttachment(apart.serial))
    _ = try await add(request(4, fixture, by: .senders, length: 900, limits), fixture)
    // The received bytes are used, and not reserved any more: of the first 60 are.
    #expect(try await store.reserve(first.serial, received: 840, limits) == .reserved)
    #expect(try await store.noteSynced(first.serial, upTo: 840, expiresAt: first.expiresAt))
    #expect(try await store.addAttachment(more, at: start) == .overReserved(limit: 200))
    _ = try await add(request(3, fixture, by: .device(second.serial), length: 40, limits), fixture)
}

private func beginningIsIdempotent(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let begun = try await add(request(1, fixture, idempotency: ([1], [2])), fixture)
    let again = try await fixture.store.addAttachment(request(2, fixture, idempotency: ([1], [2])), at: start)
    #expect(again == .repeated(begun))
    #expect(try await fixture.store.addAttachment(request(2, fixture, idempotency: ([1], [3])), at: start) == .reused)
    _ = try await add(request(2, fixture, by: .senders, idempotency: ([1], [3])), fixture)
    // When it was removed, the key begins another.
    _ = try await fixture.store.removeEndedAttachments(at: begun.expiresAt, limit: 10)
    _ = try await add(request(3, fixture, idempotency: ([1], [3])), fixture, at: begun.expiresAt)
}

private func partyGoes(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    let (owner, reader) = (try await other(1, fixture), try await other(2, fixture))
    _ = try await add(request(1, fixture, by: .device(owner.serial)), fixture)
    _ = try await add(request(2, fixture, readers: [.device(owner.serial)]), fixture)
    _ = try await add(request(3, fixture, readers: [.device(owner.serial), .device(reader.serial)]), fixture)
    _ = try await store.deleteDevice(owner.serial, at: start)
    #expect(try await store.addAttachment(request(9, fixture, by: .device(owner.serial)), at: start) == .ownerGone)
    var removed: Set<AttachmentID> = []
    while true {
        let swept = try await store.removeEndedAttachments(at: start, limit: 2)
        removed.formUnion(swept.removed)
        if swept.isDone { break }
    }
    #expect(removed == [id(1), id(2)])
    #expect(try await store.attachment(id(3)) != nil)
    _ = try await store.deleteDevice(reader.serial, at: start)
    #expect(try await store.removeEndedAttachments(at: start, limit: 2).removed == [id(3)])
}

private func appGoes(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    for number in 1...5 { _ = try await add(request(UInt64(number), fixture, by: .senders), fixture) }
    _ = try await store.deleteApp(try StoreFixture.appID, at: start)
    #expect(try await store.addAttachment(request(9, fixture, by: .senders), at: start) == .ownerGone)
    let swept = try await store.removeEndedAttachments(at: start, limit: 3)
    #expect(swept.removed.count == 3 && !swept.isDone)
    #expect(try await store.removeEndedAttachments(at: start, limit: 3).removed.count == 2)
    #expect(try await store.removeEndedAttachments(at: start, limit: 3).isDone)
}

private func attachmentsAreKnown(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await add(request(1, fixture), fixture)
    _ = try await add(request(2, fixture), fixture)
    #expect(try await fixture.store.knownAttachments([id(1), id(2), id(3)]) == [id(1), id(2)])
}
