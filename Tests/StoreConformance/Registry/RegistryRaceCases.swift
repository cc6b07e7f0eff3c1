import CarillonCore
import CarillonWire
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let registryRaces: [StoreCase] = [
        StoreCase("an app that is created or deleted at once is so once", appsAtOnce),
        StoreCase("a key that is stored, rotated or revoked at once is so once", keysAtOnce),
        StoreCase("of an app's revoked keys so many are kept, the last ones", revokedKeysAreLimited),
        StoreCase("of key rings that replace one at once, one does", keyRingsAtOnce),
        StoreCase("credentials and rules that are set at once are one call's, and are removed once", documentsAtOnce),
        StoreCase("the text of alerts is an app's own, and is replaced whole", alertTextIsKept),
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

private func documentsAtOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, id, app) = (fixture.store, try StoreFixture.appID, fixture.device.app)
    let lane = PushLane(app: app, environment: .production)
    let credentials = (0..<8).map { number in
        GatewayCredential(
            app: id, lane: lane, sealed: [UInt8(number)], summary: "{\"kind\":\"\(number)\"}",
            setAt: start.adding(seconds: Int64(number)))
    }
    let rules = (0..<8).map { number in
        StoredUserRules(app: app, sealed: [UInt8(number)], setAt: start.adding(seconds: Int64(number)))
    }
    let isPut = try await atOnce(16) { number in
        if number < 8 { return try await store.putCredential(credentials[number]) }
        return try await store.putUserRules(rules[number - 8])
    }
    #expect(isPut == Array(repeating: true, count: 16))
    let present = try await store.credentials(of: id)
    #expect(present.count == 1 && present.allSatisfy(credentials.contains))
    let presentRules = try #require(try await store.userRules(of: app))
    #expect(rules.contains(presentRules))
    let lanes = try await atOnce(8) { _ in try await store.removeCredential(of: id, for: .production) }
    #expect(lanes.compactMap { $0 } == [lane])
    let isRemoved = try await atOnce(8) { _ in try await store.removeUserRules(of: app) }
    #expect(isRemoved.filter { $0 }.count == 1)
    #expect(try await store.credentials(of: nil).isEmpty)
    #expect(try await store.userRules(of: app) == nil)
}

private func alertTextIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, id, app) = (fixture.store, try StoreFixture.appID, fixture.device.app)
    let other = try #require(AppID("com.example.other"))
    let otherApp = try #require(try await store.createApp(other, at: start)).serial
    #expect(try await store.alert(of: app) == nil)
    #expect(try await store.putAlert("{\"title\":\"a\"}", of: id) == app)
    #expect(try await store.putAlert("{\"title\":\"b\"}", of: other) == otherApp)
    #expect(try await store.putAlert("{\"title\":\"c\"}", of: id) == app)
    #expect(try await store.alert(of: app) == "{\"title\":\"c\"}")
    #expect(try await store.alert(of: otherApp) == "{\"title\":\"b\"}")
    #expect(try await store.putAlert(nil, of: id) == app)
    #expect(try await store.putAlert(nil, of: id) == app, "the app is there, with a text or without")
    #expect(try await store.alert(of: app) == nil)
    #expect(try await store.alert(of: otherApp) == "{\"title\":\"b\"}")
    _ = try await store.deleteApp(other, at: start)
    #expect(try await store.putAlert("{}", of: other) == nil)
}
