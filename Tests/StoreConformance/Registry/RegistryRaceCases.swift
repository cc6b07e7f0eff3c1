import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let registryRaces: [StoreCase] = [
        StoreCase("an app that is created or deleted concurrently is so once", appsAtOnce),
        StoreCase("a key that is stored, rotated or revoked concurrently is so once", keysAtOnce),
        StoreCase("a limited number of an app's revoked keys is stored, the newest", revokedKeysAreLimited),
        StoreCase("of concurrent replacements of a key ring, one succeeds", keyRingsAtOnce),
    ]
}

private func key(_ number: UInt64, _ role: KeyRole, app: AppID? = nil) -> AccessKey {
    AccessKey(
        id: KeyID(number), role: role, app: app, name: nil, secretHash: SecretHash(of: [UInt8(number % 256)]),
        createdAt: start)
}

private func appsAtOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let id = try StoreFixture.appID
    for round in Int64(0)..<5 {
        let made = try await atOnce(8) { number in
            try await store.createApp(id, at: start.adding(seconds: round * 10 + Int64(number)))
        }
        let created = made.compactMap { $0 }
        #expect(created.count == 1)
        #expect(try await store.apps() == created)
        #expect(try await store.app(id) == created.first)
        let deleted = try await atOnce(8) { _ in try await store.deleteApp(id, at: start) }
        #expect(deleted.filter { $0 }.count == 1)
        #expect(try await store.apps().isEmpty)
    }
}

private func keysAtOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let first = key(1, .admin)
    #expect(try await store.insertKey(first))
    var other = first
    other.name = "another"
    let taken = other
    await #expect(throws: StoreFault.self, "the id is taken") { try await store.insertKey(taken) }
    #expect(try await store.key(first.id) == first)
    // Each rotation keeps the secret that it replaces.
    let rotated = try await atOnce(8) { number in
        try await store.rotateKey(
            first.id, to: SecretHash(of: [100, UInt8(number)]), earlierValidUntil: start, servedUntil: 9)
    }
    #expect(rotated == Array(repeating: true, count: 8))
    let secrets = (0..<8).map { SecretHash(of: [100, UInt8($0)]) }
    let left = try #require(try await store.key(first.id))
    let earlier = try #require(left.earlier)
    #expect(secrets.contains(left.secretHash) && secrets.contains(earlier.hash) && left.secretHash != earlier.hash)
    let revoked = try await atOnce(8) { number in
        try await store.revokeKey(first.id, at: start.adding(seconds: Int64(number)))
    }
    let winners = revoked.indices.filter { revoked[$0] }
    #expect(winners.count == 1)
    let winner = try #require(winners.first)
    #expect(try await store.key(first.id)?.revokedAt == start.adding(seconds: Int64(winner)))
}

private func revokedKeysAreLimited(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let app = try StoreFixture.appID
    _ = try await store.createApp(app, at: start)
    let most = UInt64(AccessKey.revokedKept)
    let kept = [key(1000, .sender, app: app), key(1001, .admin), key(1002, .admin)]
    for key in kept { #expect(try await store.insertKey(key)) }
    #expect(try await store.revokeKey(KeyID(1001), at: start))
    for number in 1...most + 1 {
        #expect(try await store.insertKey(key(number, .sender, app: app)))
        #expect(try await store.revokeKey(KeyID(number), at: start.adding(seconds: Int64(number))))
        if number == most { #expect(try await store.key(KeyID(1)) != nil, "as many as are kept") }
    }
    #expect(try await store.key(KeyID(1)) == nil, "the oldest is forgotten")
    #expect(try await store.key(KeyID(2)) != nil)
    #expect(try await store.keys().count == Int(most) + kept.count)
    for key in kept { #expect(try await store.key(key.id) != nil, "it is not revoked, or not of the app") }
}

private func keyRingsAtOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    var before: [StoredTokenKey] = []
    for round in UInt8(0)..<5 {
        let rings = (UInt8(1)...8).map { number in
            [StoredTokenKey(id: number, bytes: Array(repeating: round * 16 + number, count: 32), isWrapped: number % 2 == 0)]
        }
        let present = before
        let replaced = try await atOnce(rings.count) { place in
            try await store.replaceKeyRing(present, with: rings[place])
        }
        let winners = replaced.indices.filter { replaced[$0] }
        #expect(winners.count == 1)
        let winner = try #require(winners.first)
        before = rings[winner]
        #expect(try await store.keyRing() == before)
    }
}
