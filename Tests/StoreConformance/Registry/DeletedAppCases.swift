import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let deletedApps: [StoreCase] = [
        StoreCase("nothing is stored for an app that was deleted, nor for its devices and channels", deletedAppTakesNothing),
        StoreCase("nothing is stored for the channel of a former user", formerChannelTakesNothing),
    ]
}

private func attachment(of device: Device) -> AttachmentRequest {
    AttachmentRequest(
        proposed: AttachmentID(Bytes16(high: 3, low: 1)),
        owner: AttachmentUser(app: device.app, principal: .device(device.serial)), length: 10, digest: nil,
        readers: [.senders],
        lifetimeSeconds: 60, idempotency: nil, limits: AttachmentLimits())
}

private func deletedAppTakesNothing(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let phone = try await fixture.device(1)
    let (app, id) = (phone.app, phone.appID)
    let channel = fixture.base.first
    let elsewhere = try await fixture.device(2, app: "com.example.other")
    try await fixture.offer(phone, elsewhere)
    for realm in [app, elsewhere.app] { try await store.setDocument(.realm, of: realm, to: "home") }
    let request = ServiceFixture.request(1, from: elsewhere, to: phone)
    let made = ServiceFixture.made(request, try await fixture.parties(elsewhere, phone))
    let former = try #require(try await store.binding(of: phone.serial, profile: "former", at: start))
    let present = try #require(try await store.binding(of: phone.serial, profile: "present", at: start))
    #expect(try await store.deleteApp(id, at: start))
    // Its devices still exist, until the deletion continues.
    let opened = try await store.openChannel(
        channel.id, device: channel.device, name: nil, vapidKey: nil, wake: nil, limit: 9, at: start)
    #expect(opened == .deviceGone)
    #expect(try await store.putServiceProfile(ServiceFixture.profile("late"), of: phone.serial) == nil)
    #expect(try await store.serviceProviders(for: phone.serial, ServiceQuery(), limit: 9) == nil)
    #expect(try await store.setClusterPlace(ClusterPlace(), of: phone.id, app: app) == false)
    #expect(try await store.cluster(of: app).isEmpty)
    #expect(try await store.commit([made]) != [.stored(replaced: nil)])
    #expect(try await store.serviceRequest(request.id) == nil)
    for profile in ["new", former.profile] {
        #expect(try await store.binding(of: phone.serial, profile: profile, at: start) == nil)
    }
    #expect(try await store.presentBinding(of: phone.serial)?.serial == present.serial, "it does not end for another")
    #expect(try await store.binding(of: fixture.base.device.serial, profile: "new", at: start) == nil)
    let key = AccessKey(
        id: KeyID(1), role: .client, app: id, name: nil, secretHash: SecretHash(of: [1]), createdAt: start)
    #expect(try await !store.insertKey(key))
    let owner = AttachmentUser(app: app, principal: .device(phone.serial))
    #expect(try await store.attachmentQuotaName(of: owner) == nil)
    #expect(try await store.addAttachment(attachment(of: phone), at: start) == .ownerGone)
    let watch = WatchRequest(
        channel: channel.serial, ping: nil, firstDueAt: nil, disconnectAddress: try CallAddress("https://example.com/"),
        sealed: Watch.Sealed(secret: [1], token: [2]), callbackID: "msg_1", renewsSecret: false)
    #expect(try await store.putWatch(watch, at: start) == .channelGone)
    while try await !store.continueDeletions(at: start, limit: 100).isDone {}
    #expect(try await store.putWatch(watch, at: start) == .channelGone)
    #expect(try await store.addAttachment(attachment(of: phone), at: start) == .ownerGone)
    #expect(try await store.dueWork(at: .never, besides: BusyPeerSets(), limit: 9).isEmpty, "no backend must be called")
}

private func formerChannelTakesNothing(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let phone = try await fixture.device(1)
    let channel = try await StoreFixture.open(9, of: phone, in: store)
    try await fixture.signIn("bob", on: phone)
    #expect(try await store.channelsOfFormerUsers(of: phone.serial, limit: 9) == [channel])
    let watch = WatchRequest(
        channel: channel.serial, ping: nil, firstDueAt: nil, disconnectAddress: try CallAddress("https://example.com/"),
        sealed: Watch.Sealed(secret: [1], token: [2]), callbackID: "msg_1", renewsSecret: false)
    #expect(try await store.putWatch(watch, at: start) == .channelGone)
    #expect(try await store.watch(of: channel.serial) == nil)
}
