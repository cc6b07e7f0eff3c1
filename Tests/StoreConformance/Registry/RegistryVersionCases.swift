import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let registryVersion: [StoreCase] = [
        StoreCase("each change of the registry increments its version", changesIncrement),
        StoreCase("a call without changes, or outside the registry, leaves its version", othersLeaveTheVersion),
        StoreCase("a change that cannot be written leaves the version of the registry", failedChangeLeavesTheVersion),
    ]
}

private typealias Change = (name: String, make: () async throws -> Void)

private func key(_ number: UInt64, app: AppID?) -> AccessKey {
    AccessKey(
        id: KeyID(number), role: app == nil ? .admin : .sender, app: app, name: nil, secretHash: SecretHash(of: [1]),
        createdAt: start)
}

private let ring = [StoredTokenKey(id: 1, bytes: Array(repeating: 1, count: 32), isWrapped: false)]

private func attachment(of device: Device) -> AttachmentRequest {
    AttachmentRequest(
        proposed: AttachmentID(Bytes16(high: 3, low: 1)),
        owner: AttachmentUser(app: device.app, principal: .device(device.serial)), length: 10, digest: nil,
        readers: [.senders],
        lifetimeSeconds: 60, idempotency: nil, limits: AttachmentLimits())
}

private func changesIncrement(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let server = try await fixture.device(1, of: nil)
    let other = try #require(AppID("com.example.other"))
    let document = AppDocument.Key(.alertText, of: server.app)
    let changes: [Change] = [
        ("the id of the server", { _ = try await store.serverID(proposing: ServerID(Bytes16(high: 8, low: 8))) }),
        ("the history", { _ = try await store.history(proposing: 7) }),
        ("the key ring", { _ = try await store.replaceKeyRing([], with: ring) }),
        ("a new app", { _ = try await store.createApp(other, at: start) }),
        ("a new key", { _ = try await store.insertKey(key(1, app: other)) }),
        (
            "another secret",
            {
                _ = try await store.rotateKey(
                    KeyID(1), to: SecretHash(of: [2]), earlierValidUntil: start, servedUntil: 9)
            }
        ),
        ("a revoked key", { _ = try await store.revokeKey(KeyID(1), at: start) }),
        ("a document", { _ = try await store.putDocument([1], as: document, at: start) }),
        ("the same document", { _ = try await store.putDocument([1], as: document, at: start) }),
        ("a removed document", { _ = try await store.removeDocument(document) }),
        ("a server of an app", { _ = try await store.setClusterPlace(ClusterPlace(), of: server.id, app: server.app) }),
        ("a removed server", { _ = try await store.setClusterPlace(nil, of: server.id, app: server.app) }),
        ("a deleted app", { _ = try await store.deleteApp(other, at: start) }),
    ]
    for change in changes {
        let before = try await store.registryVersion()
        try await change.make()
        #expect(try await store.registryVersion() > before, "\(change.name)")
    }
    let last = try await store.registryVersion()
    guard let again = try await stores.restart(store) else { return }
    #expect(try await again.registryVersion() == last)
}

private func othersLeaveTheVersion(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let (store, app) = (fixture.store, try StoreFixture.appID)
    let device = try await fixture.device(1)
    _ = try await store.serverID(proposing: ServerID(Bytes16(high: 8, low: 8)))
    _ = try await store.history(proposing: 7)
    _ = try await store.replaceKeyRing([], with: ring)
    _ = try await store.insertKey(key(1, app: app))
    _ = try await store.revokeKey(KeyID(1), at: start)
    let (none, nobody) = (try #require(AppID("com.example.none")), AppSerial(device.app.rawValue + 99))
    let server = try await fixture.device(3)
    _ = try await store.setClusterPlace(ClusterPlace(), of: server.id, app: server.app)
    let document = AppDocument.Key(.alertText, of: device.app)
    let unknown = AppDocument.Key(.alertText, of: nobody)
    let changes: [Change] = [
        ("the id that is there", { _ = try await store.serverID(proposing: ServerID(Bytes16(high: 9, low: 9))) }),
        ("the history that is there", { _ = try await store.history(proposing: 8) }),
        ("another key ring than the present one", { _ = try await store.replaceKeyRing([], with: ring) }),
        ("an app that exists", { _ = try await store.createApp(app, at: start) }),
        ("an app that does not exist", { _ = try await store.deleteApp(none, at: start) }),
        ("a key of no app", { _ = try await store.insertKey(key(2, app: none)) }),
        ("a key that is revoked", { _ = try await store.revokeKey(KeyID(1), at: start) }),
        (
            "a secret of a revoked key",
            {
                _ = try await store.rotateKey(
                    KeyID(1), to: SecretHash(of: [2]), earlierValidUntil: start, servedUntil: 9)
            }
        ),
        ("a document of no app", { _ = try await store.putDocument([1], as: unknown, at: start) }),
        ("a document that is not there", { _ = try await store.removeDocument(document) }),
        ("a place of no device", { _ = try await store.setClusterPlace(ClusterPlace(), of: device.id, app: nobody) }),
        ("a server that is none", { _ = try await store.setClusterPlace(nil, of: device.id, app: device.app) }),
        ("a device", { _ = try await fixture.device(2) }),
        ("a deleted device that is a server", { _ = try await store.deleteDevice(server.serial, at: start) }),
        ("a channel", { _ = try await StoreFixture.open(9, of: device, in: store) }),
        ("an attachment", { _ = try await store.addAttachment(attachment(of: device), at: start) }),
        ("an epoch", { _ = try await store.claimEpoch() }),
        ("the time of service", { try await store.noteServed(60) }),
    ]
    for change in changes {
        let before = try await store.registryVersion()
        try await change.make()
        #expect(try await store.registryVersion() == before, "\(change.name)")
    }
}

private func failedChangeLeavesTheVersion(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    let document = AppDocument.Key(.userRules, of: fixture.device.app)
    let first = try #require(try await store.putDocument([1], as: document, at: start))
    let full = StoreFault(.full, "the disk is full")
    stores.refuseChanges(of: store, with: full)
    await #expect(throws: full) { try await store.putDocument([2], as: document, at: start) }
    await #expect(throws: full) { try await store.removeDocument(document) }
    #expect(try await store.registryVersion() == first)
    #expect(try await store.document(document)?.bytes == [1])
    stores.refuseChanges(of: store, with: nil)
    let second = try #require(try await store.putDocument([3], as: document, at: start))
    #expect(second > first)
    #expect(try await store.registryVersion() == second)
}
