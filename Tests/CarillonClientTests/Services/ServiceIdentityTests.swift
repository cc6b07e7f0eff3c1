import CarillonWire
import Crypto
import Foundation
import GRDB
import TestSupport
import Testing

@testable import CarillonClient

/// The identities that the storage keeps: of this device for each of its users, and of others.
struct ServiceIdentityTests {
    private let directory = TemporaryDirectory()
    private let peer = ServicePeer(app: "com.example.b", device: String(repeating: "0", count: 32))

    private func box() throws -> ServiceBox {
        let store = try ClientStore(directory: directory.path, patience: 60)
        _ = try store.load(server: "http://127.0.0.1:1", app: "com.example.app")
        return ServiceBox(store: store)
    }

    private func apply(_ changes: [StoreChange], to box: ServiceBox) async throws {
        try await box.store.inStep { db in for change in changes { try change.apply(to: db) } }
    }

    @Test func `each user of the device has an identity that stays, and keys that change`() async throws {
        let box = try box()
        var identities: [String: Data] = [:]
        var names: Set<String> = []
        for (number, user) in ["ada", nil, "ben", "ada", nil, "ben"].enumerated() {
            try await apply([.saveAcceptedUser(user)], to: box)
            let keys = try await box.keys(at: Int64(number))
            let name = user ?? ""
            #expect(identities[name] == nil || identities[name] == keys.identity.rawRepresentation)
            identities[name] = keys.identity.rawRepresentation
            #expect(names.insert(keys.key.name).inserted, "the keys of before are gone")
        }
        #expect(Set(identities.values).count == 3)
    }

    @Test func `others are known again when a user signs in again, and can call only if the server allows it`() async throws
    {
        let box = try box()
        try await apply([.saveAcceptedUser("ada")], to: box)
        #expect(try await box.trust(of: peer, [1], user: nil, at: 1) == .first)
        let day: Int64 = 86_400_000
        try await box.authorizeLocalRequests(of: peer.device, at: day)
        try await apply([.saveAcceptedUser(nil), .saveAcceptedUser("ada")], to: box)
        #expect(try await box.trust(of: peer, [2], user: nil, at: 2) == .changed(isNew: true))
        #expect(try await box.trust(of: peer, [1], user: nil, at: 3) == .known)
        let event = ServiceEvent.request(
            RequestHeader(
                id: try #require(ServiceRequestID(String(repeating: "0", count: 32))),
                service: try #require(ServiceID("com.example.a")), version: try #require(ServiceVersion("1")),
                method: try #require(MethodName("m"))), from: peer, expiresAt: 1, content)
        #expect(try await !box.addLocal(event, event.body, at: day + 1), "the server vouched for it before")
        try await box.authorizeLocalRequests(of: peer.device, at: day)
        #expect(try await box.addLocal(event, event.body, at: day + 1))
    }

    private var content: SealedContent {
        let bundle = KeyBundle(
            identity: Array(repeating: 1, count: 32), id: "00112233445566aa", key: Array(repeating: 2, count: 32),
            until: 2_000_000_000_000, signature: Array(repeating: 3, count: 64))
        return SealedContent(
            keyID: bundle.id, sender: bundle, encapsulated: Array(repeating: 4, count: 32), body: [1], files: 0,
            fileBytes: 0)
    }

    @Test func `a device that the server lost keeps identities, and one that is signed out forgets them`() async throws {
        let box = try box()
        let before = try await box.keys(at: 1)
        _ = try await box.trust(of: peer, [1], user: nil, at: 1)
        try await apply([.eraseIdentity], to: box)
        #expect(try await box.keys(at: 2).identity.rawRepresentation == before.identity.rawRepresentation)
        #expect(try await box.trust(of: peer, [2], user: nil, at: 2) == .changed(isNew: true))
        var session = ClientSession(.init(), restoring: StoredState())
        let actions = session.signedOut(at: .now)
        #expect(actions.contains(.write(.eraseServiceIdentities)))
        try await apply([.eraseIdentity, .eraseServiceIdentities], to: box)
        #expect(try await box.keys(at: 3).identity.rawRepresentation != before.identity.rawRepresentation)
        #expect(try await box.trust(of: peer, [2], user: nil, at: 3) == .first)
    }

    @Test func `the identities of a thousand users are stored, and the least recently used one is removed`() async throws {
        let box = try box()
        let first = try await box.keys(at: 1)
        try await box.store.inStep { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
                    INSERT INTO service_identity SELECT 'user ' || i, x'00', i FROM n
                    """, arguments: [ServiceBox.mostIdentities])
        }
        try await apply([.saveAcceptedUser("new")], to: box)
        _ = try await box.keys(at: 0)
        let users = try await box.store.inStep { db in try String.fetchSet(db, sql: "SELECT user FROM service_identity") }
        #expect(users.count == ServiceBox.mostIdentities)
        #expect(users.contains("new") && users.contains("user 2") && !users.contains(""))
        try await apply([.saveAcceptedUser(nil)], to: box)
        #expect(try await box.keys(at: 2).identity.rawRepresentation != first.identity.rawRepresentation)
    }

    @Test func `an identity that is used again is not the one that is removed`() async throws {
        let box = try box()
        let first = try await box.keys(at: 1)
        try await box.store.inStep { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
                    INSERT INTO service_identity SELECT 'user ' || i, x'00', i FROM n
                    """, arguments: [ServiceBox.mostIdentities])
        }
        try await apply([.saveAcceptedUser("other"), .saveAcceptedUser(nil)], to: box)
        #expect(try await box.keys(at: 5000).identity.rawRepresentation == first.identity.rawRepresentation)
        try await apply([.saveAcceptedUser("new")], to: box)
        _ = try await box.keys(at: 6000)
        let users = try await box.store.inStep { db in try String.fetchSet(db, sql: "SELECT user FROM service_identity") }
        #expect(users.count == ServiceBox.mostIdentities)
        #expect(users.contains("new") && users.contains("") && !users.contains("user 2"))
    }

    @Test func `identities are listed for the present user, and accepted by their fingerprint`() async throws {
        let box = try box()
        try await apply([.saveAcceptedUser("ada")], to: box)
        _ = try await box.trust(of: peer, [1], user: nil, at: 1)
        _ = try await box.trust(of: peer, [2], user: nil, at: 2)
        let listed = try await box.identities()
        #expect(listed.map(\.peer) == [peer])
        #expect(listed.map(\.pin.identity) == [[1]] && listed.map(\.pin.offered) == [[2]])
        #expect(try await !box.accept(peer.device, fingerprint: Fingerprint.text(of: [3])))
        let typed = Fingerprint.text(of: [2]).uppercased().filter { $0 != " " }
        #expect(try await box.accept(peer.device, fingerprint: Fingerprint.standard(typed)))
        #expect(try await box.identities().map(\.pin.identity) == [[2]])
        try await apply([.saveAcceptedUser("ben")], to: box)
        #expect(try await box.identities().isEmpty)
    }

    @Test(arguments: ["", "12", "12345", " 1234 5 "]) func `any text can be a fingerprint`(_ text: String) {
        #expect(Fingerprint.standard(text).filter { $0 != " " } == text.filter { $0 != " " })
    }

    @Test(arguments: ["ada", nil] as [String?]) func `a storage of version 11 keeps its identity and those of others`(
        _ user: String?
    ) async throws {
        let key = Curve25519.Signing.PrivateKey().rawRepresentation
        do {
            let box = try box()
            try await apply([.saveAcceptedUser(user)], to: box)
            let device = peer.device
            try await box.store.inStep { db in
                try ClientSchemaUndo.version12(db)
                try db.execute(sql: "INSERT INTO service_identity VALUES (1, ?)", arguments: [key])
                try db.execute(
                    sql: "INSERT INTO service_peer VALUES (?, 'com.example.b', x'01', x'02', 7)", arguments: [device])
            }
        }
        let box = try box()
        #expect(try await box.keys(at: 1).identity.rawRepresentation == key)
        #expect(try await box.trust(of: peer, [2], user: "ben", at: 1) == .changed(isNew: user == nil))
        #expect(try await box.trust(of: peer, [1], user: "ben", at: 1) == .known)
        #expect(try await box.accept(peer.device))
    }
}
