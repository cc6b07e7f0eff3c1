import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let attachmentRaces: [StoreCase] = [
        StoreCase("of concurrent requests with one key, one begins an attachment", oneKeyBeginsOne),
        StoreCase("uploads that begin at once stay within the limits", uploadsAtOnceAreLimited),
        StoreCase("an attachment becomes complete once, and is removed once", attachmentEndsOnce),
        StoreCase("of concurrent readers of an attachment, the last one removes it", lastReaderRemoves),
        StoreCase("an attachment expires by both clocks, and not without a time", attachmentExpiresByBothClocks),
        StoreCase("the uploads and readable files of a user are not those of the next user", formerUsersAttachments),
    ]
}

private func id(_ number: Int) -> AttachmentID { AttachmentID(Bytes16(high: 3, low: UInt64(number))) }

private func request(
    _ number: Int, of principal: AttachmentPrincipal, in app: AppSerial, length: Int64 = 300,
    readers: [AttachmentPrincipal] = [.senders],
    key: [UInt8]? = nil, _ limits: AttachmentLimits = AttachmentLimits()
) -> AttachmentRequest {
    AttachmentRequest(
        proposed: id(number), owner: AttachmentUser(app: app, principal: principal), length: length, digest: nil,
        readers: readers,
        lifetimeSeconds: 50, idempotency: key.map { (key: $0, fingerprint: [UInt8(1)]) }, limits: limits)
}

private func add(_ request: AttachmentRequest, to store: any Store) async throws -> CarillonCore.Attachment {
    guard case .added(let attachment) = try await store.addAttachment(request, at: start) else {
        throw StoreFixture.Missing()
    }
    return attachment
}

private func added(_ additions: [AttachmentAddition]) -> [CarillonCore.Attachment] {
    var added: [CarillonCore.Attachment] = []
    for case .added(let attachment) in additions { added.append(attachment) }
    return added
}

private func oneKeyBeginsOne(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    let additions = try await atOnce(8) { number in
        try await store.addAttachment(request(number, of: .device(device.serial), in: device.app, key: [9]), at: start)
    }
    let begun = added(additions)
    let first = try #require(begun.first)
    #expect(begun.count == 1)
    #expect(additions.filter { $0 == .repeated(first) }.count == 7)
    #expect(try await store.knownAttachments((0..<8).map { id($0) }) == [first.id])
}

private func uploadsAtOnceAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    var few = AttachmentLimits()
    few.uploadsOfDevice = 3
    var small = AttachmentLimits()
    (small.userBytes, small.appBytes, small.leastCharge, small.uploadsOfDevice) = (1000, 10_000, 100, 100)
    let bounds: [(limits: AttachmentLimits, refusal: AttachmentAddition)] = [
        (limits: few, refusal: .tooManyUploads(limit: 3)), (limits: small, refusal: .overUser(limit: 1000)),
    ]
    for (limits, refusal) in bounds {
        let additions = try await atOnce(8) { number in
            try await store.addAttachment(request(number, of: .device(device.serial), in: device.app, limits), at: start)
        }
        let begun = added(additions)
        #expect(begun.count == 3)
        #expect(additions.filter { $0 == refusal }.count == 5)
        for attachment in begun { #expect(try await store.removeAttachment(attachment.serial)) }
    }
}

private func attachmentEndsOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    let attachment = try await add(request(1, of: .device(device.serial), in: device.app), to: store)
    let completed = try await atOnce(8) { number in
        try await store.completeAttachment(attachment.serial, expiresAt: start.adding(seconds: Int64(number)))
    }
    let winners = completed.indices.filter { completed[$0] }
    #expect(winners.count == 1)
    let winner = try #require(winners.first)
    #expect(try await store.attachment(attachment.id)?.expiresAt == start.adding(seconds: Int64(winner)))
    let removed = try await atOnce(8) { _ in try await store.removeAttachment(attachment.serial) }
    #expect(removed.filter { $0 }.count == 1)
    #expect(try await store.reserve(attachment.serial, received: 1, AttachmentLimits()) == .gone)
    #expect(try await !store.isReader(.senders, of: attachment.serial))
}

private func lastReaderRemoves(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    var readers: [AttachmentPrincipal] = [.senders]
    for number in UInt64(1)...5 {
        let new = NewDevice(DeviceID(Bytes16(high: 8, low: number)), app: try StoreFixture.appID)
        readers.append(.device(try #require(try await fixture.insert(new, secret: [8, UInt8(number)])).serial))
    }
    let all = readers
    let attachment = try await add(request(1, of: .device(device.serial), in: device.app, readers: all), to: store)
    let isLast = try await atOnce(all.count) { place in
        try await store.attachmentReceived(attachment.serial, by: all[place])
    }
    #expect(isLast.filter { $0 }.count == 1)
    #expect(try await store.attachment(attachment.id) == nil)
}

private func attachmentExpiresByBothClocks(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    try await store.noteServed(1000)
    let unfinished = try await add(request(1, of: .device(device.serial), in: device.app), to: store)
    let whole = try await add(request(2, of: .senders, in: device.app), to: store)
    #expect(try await store.completeAttachment(whole.serial, expiresAt: start.adding(seconds: 50)))
    let limit = AttachmentLimits().unfinishedSeconds
    let lag = RetentionTime.lagSeconds
    func removed(_ seconds: Int64, _ milliseconds: Int64 = 0, served: Int64) async throws -> [AttachmentID] {
        let now = start.adding(seconds: seconds).adding(milliseconds: milliseconds)
        let retention = RetentionTime(now: now, served: served)
        let step = try await store.removeEndedAttachments(by: retention, unfinishedSeconds: limit, limit: 9)
        #expect(step.isDone)
        return step.removed
    }
    let late = 1000 + limit + lag
    #expect(try await removed(50, -1, served: late).isEmpty)
    #expect(try await removed(50, served: 1050 + lag - 1).isEmpty)
    #expect(try await removed(50, served: 1050 + lag) == [whole.id])
    #expect(try await removed(limit, -1, served: late).isEmpty)
    #expect(try await removed(limit, served: late - 1).isEmpty)
    // Without a time nothing expires, and unfinished uploads end all the same.
    let left = try await add(request(3, of: .senders, in: device.app, readers: [.device(device.serial)]), to: store)
    _ = try await store.deleteDevice(device.serial, at: start)
    let step = try await store.removeEndedAttachments(by: nil, unfinishedSeconds: limit, limit: 9)
    #expect(Set(step.removed) == [unfinished.id, left.id], "it was the device's, or for the device alone")
}

private func formerUsersAttachments(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    let (principal, app) = (AttachmentPrincipal.device(phone.serial), phone.app)
    let begun = try await add(request(1, of: principal, in: app), to: store)
    let whole = try await add(request(2, of: principal, in: app, key: [1]), to: store)
    #expect(try await store.completeAttachment(whole.serial, expiresAt: start.adding(seconds: 50)))
    let shared = try await add(request(3, of: .senders, in: app, readers: [principal, .device(tablet.serial)]), to: store)
    let own = try await add(request(4, of: .senders, in: app, readers: [principal]), to: store)
    try await fixture.signIn("bob", on: phone)
    #expect(try await store.attachment(whole.id)?.owner == nil)
    #expect(try await store.isReader(.senders, of: whole.serial), "its readers may fetch it still")
    #expect(try await !store.noteSynced(begun.serial, upTo: 10, expiresAt: start.adding(seconds: 90)))
    #expect(try await !store.completeAttachment(begun.serial, expiresAt: start.adding(seconds: 90)))
    for attachment in [shared, own] { #expect(try await !store.isReader(principal, of: attachment.serial)) }
    #expect(try await store.isReader(.device(tablet.serial), of: shared.serial))
    _ = try await add(request(5, of: principal, in: app, key: [1]), to: store)
    var removed: Set<AttachmentID> = []
    while true {
        let step = try await store.removeEndedAttachments(by: nil, unfinishedSeconds: 60, limit: 2)
        removed.formUnion(step.removed)
        if step.isDone { break }
    }
    #expect(removed == [begun.id, own.id])
    #expect(try await store.isReader(.device(tablet.serial), of: shared.serial))
}
