import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

private func key(_ number: UInt64, _ role: KeyRole, app: AppID? = nil) -> AccessKey {
    AccessKey(
        id: KeyID(number), role: role, app: app, name: "key \(number)", secretHash: SecretHash(of: [UInt8(number % 256)]),
        createdAt: start)
}

extension StoreCase {
    static let apps: [StoreCase] = [
        StoreCase("an app is created once, and found by its name", appIsCreatedOnce),
        StoreCase("a key is kept as it was created, and is removed with its app", keyIsKeptAsItWasMade),
        StoreCase(
            "a key can be rotated and revoked, and not after it was revoked",
            keyIsRotatedAndRevoked),
    ]
}

private func appIsCreatedOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let names = try ["com.example.b", "com.example.a"].map { try #require(AppID($0)) }
    #expect(try await store.apps().isEmpty)
    for name in names {
        let app = try #require(try await store.createApp(name, at: start))
        #expect(app.id == name && app.createdAt == start)
        #expect(try await store.app(name) == app)
        #expect(try await store.createApp(name, at: start.adding(seconds: 1)) == nil)
    }
    #expect(try await store.apps().map(\.id) == names.reversed())
    #expect(try await !store.deleteApp(try #require(AppID("com.example.c")), at: start))
}

private func keyIsKeptAsItWasMade(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    let app = try StoreFixture.appID
    #expect(try await !store.insertKey(key(1, .sender, app: app)), "its app does not exist")
    _ = try await store.createApp(app, at: start)
    let keys = [key(.max, .admin), key(1, .sender, app: app), key(2, .client, app: app)]
    for key in keys {
        #expect(try await store.insertKey(key))
        #expect(try await store.key(key.id) == key)
    }
    #expect(try await Set(store.keys().map(\.id)) == Set(keys.map(\.id)))
    _ = try await store.deleteApp(app, at: start)
    #expect(try await store.keys().map(\.id) == [KeyID(.max)])
}

private func keyIsRotatedAndRevoked(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings())
    var key = key(1, .admin)
    let (next, later) = (SecretHash(of: [7]), start.adding(seconds: 60))
    #expect(try await !store.rotateKey(key.id, to: next, earlierValidUntil: later, servedUntil: 90))
    #expect(try await !store.revokeKey(key.id, at: later))
    _ = try await store.insertKey(key)
    #expect(try await store.rotateKey(key.id, to: next, earlierValidUntil: later, servedUntil: 90))
    key.earlier = .init(hash: key.secretHash, validUntil: later, servedUntil: 90)
    key.secretHash = next
    #expect(try await store.key(key.id) == key)
    #expect(try await store.revokeKey(key.id, at: later))
    key.revokedAt = later
    #expect(try await store.key(key.id) == key)
    #expect(try await !store.revokeKey(key.id, at: later.adding(seconds: 1)))
    #expect(try await !store.rotateKey(key.id, to: SecretHash(of: [8]), earlierValidUntil: later, servedUntil: 90))
    #expect(try await store.key(key.id) == key)
}
