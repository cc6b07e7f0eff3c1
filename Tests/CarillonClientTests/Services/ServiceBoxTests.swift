import CarillonBasics
import CarillonWire
import Crypto
import Foundation
import GRDB
import Logging
import TestSupport
import Testing

@testable import CarillonClient

/// The stored data of services.
struct ServiceBoxTests {
    private let directory = TemporaryDirectory()

    private func box() throws -> ServiceBox {
        let store = try ClientStore(directory: directory.path, patience: 60)
        _ = try store.load(server: "http://127.0.0.1:1", app: "com.example.app")
        return ServiceBox(store: store)
    }

    private func id(_ number: Int) throws -> ServiceRequestID {
        try #require(ServiceRequestID(String(repeating: "0", count: 31) + String(number)))
    }

    private func add(_ body: [UInt8], to box: ServiceBox) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            box.store.schedule { db in
                continuation.resume(with: Result { try StoreChange.saveServiceEvent(body).apply(to: db) })
            }
        }
    }

    @Test func `a key is used for a week, and is kept for the requests that were sealed before its end`() async throws {
        let box = try box()
        let first = try await box.keys(at: 1000)
        let week: Int64 = 7 * 86_400_000
        #expect(first.key.validUntil == 1000 + week)
        #expect(try await box.keys(at: 999 + week).key.name == first.key.name)
        let second = try await box.keys(at: 1000 + week)
        #expect(second.key.name != first.key.name)
        #expect(second.identity.rawRepresentation == first.identity.rawRepresentation)
        // The longest deadline and a day later.
        _ = try await box.keys(at: 1000 + week + 8 * 86_400_000)
        #expect(try await box.key(named: first.key.name) != nil)
        _ = try await box.keys(at: 1001 + week + 8 * 86_400_000)
        #expect(try await box.key(named: first.key.name) == nil)
        #expect(try await box.key(named: second.key.name) != nil)
    }

    private let peer = ServicePeer(app: "com.example.b", device: String(repeating: "0", count: 32))

    private var content: SealedContent {
        let bundle = KeyBundle(
            identity: Array(repeating: 1, count: 32), id: "00112233445566aa", key: Array(repeating: 2, count: 32),
            until: 2_000_000_000_000, signature: Array(repeating: 3, count: 64))
        return SealedContent(
            keyID: bundle.id, sender: bundle, encapsulated: Array(repeating: 4, count: 32), body: [1], files: 0,
            fileBytes: 0)
    }

    private func request(_ number: Int) throws -> ServiceEvent {
        let header = RequestHeader(
            id: try id(number), service: try #require(ServiceID("com.example.a")),
            version: try #require(ServiceVersion("1")), method: try #require(MethodName("m")), deadlineSeconds: 10)
        return .request(header, from: peer, expiresAt: 1, content)
    }

    @Test func `a local request is accepted for a day after the server named its device, and from known devices`()
        async throws
    {
        let box = try box()
        func take(_ event: ServiceEvent, at now: Int64) async throws -> Bool {
            try await box.addLocal(event, event.body, at: now)
        }
        let day: Int64 = 86_400_000
        #expect(try await !take(request(1), at: day))
        _ = try await box.trust(of: peer, [1], user: nil, at: 1)
        #expect(try await !take(request(1), at: day), "it was met, and nobody vouched for it")
        try await box.authorizeLocalRequests(of: peer.device, at: 5)
        #expect(try await take(request(1), at: day + 4))
        #expect(try await !take(request(1), at: day + 5))
        #expect(try await box.events(after: 0, at: 1, limit: 10).events.map(\.isLocal) == [true])
        #expect(try await take(.cancelled(id(1)), at: 1))

        for event in [ServiceEvent.received(try id(2)), .reply(try id(2), from: peer, content), .cancelled(try id(2))] {
            #expect(try await !take(event, at: 1))
        }
        let call = StoredCall(
            id: try id(2).description, app: peer.app, device: peer.device, service: "s", version: "1", method: "m",
            deadlineSeconds: 60, foreground: "none", key: "k", hash: Data([1]), attachments: [], parameters: "null",
            files: [])
        try await box.save(call, body: [1], claiming: [], keptUntil: 1000)
        #expect(try await take(.received(id(2)), at: 1))
        var other = peer
        other.device = String(repeating: "1", count: 32)
        #expect(try await !take(.reply(id(2), from: other, content), at: 1))
        #expect(try await !take(.failed(id(2), code: "x"), at: 1))
        #expect(try await take(.reply(id(2), from: peer, content), at: 1))
        try await box.sentLocally(call.id, until: 77)
        #expect(try await box.unsent(at: 1).isEmpty)
        #expect(try await box.localCalls().map(\.until) == [77])
        #expect(try await box.call(call.id)?.localUntil == 77)
    }

    @Test func `the number of waiting events from this machine is limited`() async throws {
        let box = try box()
        _ = try await box.trust(of: peer, [1], user: nil, at: 1)
        try await box.authorizeLocalRequests(of: peer.device, at: 5)
        let event = try request(1)
        for _ in 0..<1000 { #expect(try await box.addLocal(event, event.body, at: 6)) }
        #expect(try await !box.addLocal(event, event.body, at: 6))
        // Envelopes from the server have capacity.
        try await add(event.body, to: box)
        try await box.done(1)
        try await box.done(2)
        #expect(try await box.addLocal(event, event.body, at: 6))
    }

    @Test func `a request is new once, whoever sends it, and again when nobody can send it any more`() async throws {
        let box = try box()
        let request = try request(1).body
        for _ in 0..<2 { try await add(request, to: box) }
        let first = try await box.events(after: 0, at: 1, limit: 10)
        #expect(first.events.count == 1 && first.repeated == 1)
        let again = try await box.events(after: 0, at: 1, limit: 10)
        #expect(again.events.map(\.number) == first.events.map(\.number) && again.repeated == 0, "in the next run")
        // Ten seconds and a day later.
        let forgotten: Int64 = 1 + 86_410_000
        try await add(request, to: box)
        #expect(try await box.events(after: try #require(first.last), at: forgotten, limit: 10).repeated == 1)
        try await add(request, to: box)
        #expect(try await box.events(after: try #require(first.last), at: forgotten + 1, limit: 10).events.count == 1)
    }

    @Test func `unreadable content is skipped, and the rest arrives in order`() async throws {
        let box = try box()
        try await add(Array("no JSON".utf8), to: box)
        try await add(ServiceEvent.received(id(1)).body, to: box)
        try await add(Array(#"{"event":"of a later version","id":"\#(try id(2))"}"#.utf8), to: box)
        try await add(ServiceEvent.failed(id(3), code: "x").body, to: box)
        let (events, _, last) = try await box.events(after: 0, at: 1, limit: 3)
        #expect(events.map(\.event) == [.received(try id(1))])
        let more = try await box.events(after: try #require(last), at: 1, limit: 3)
        #expect(more.events.map(\.event) == [.failed(try id(3), code: "x")])
        #expect(try await box.events(after: 0, at: 1, limit: 10).events.count == 2)
    }

    @Test func `the first identity of a device is accepted, and another one only after a confirmation`() async throws {
        let box = try box()
        let peer = ServicePeer(app: "com.example.b", device: "device")
        #expect(try await box.trust(of: peer, [1], user: nil, at: 1) == .first)
        #expect(try await box.trust(of: peer, [1], user: nil, at: 1) == .known)
        #expect(try await !box.accept("device"))
        #expect(try await box.trust(of: peer, [2], user: nil, at: 1) == .changed(isNew: true))
        #expect(try await box.trust(of: peer, [2], user: nil, at: 1) == .changed(isNew: false))
        #expect(try await box.trust(of: peer, [1], user: nil, at: 1) == .known)
        #expect(try await box.accept("device"))
        #expect(try await box.trust(of: peer, [2], user: nil, at: 1) == .known)
        #expect(try await box.trust(of: peer, [1], user: nil, at: 1) == .changed(isNew: true))
    }

    @Test func `a call has one result, and an unsent call is sent by the next run`() async throws {
        let box = try box()
        let call = StoredCall(
            id: try id(1).description, app: "com.example.b", device: "d", service: "s", version: "1", method: "m",
            deadlineSeconds: 60, foreground: "none", key: "k", hash: Data([1]), attachments: ["a"], parameters: "null",
            files: [])
        try await box.save(call, body: [1, 2], claiming: ["u"], keptUntil: 1000)
        #expect(try await box.unsent(at: 1000).map(\.body) == [[1, 2]])
        #expect(try await box.claims() == ["u"])
        try await box.unclaim(["u"])
        #expect(try await box.claims().isEmpty)
        try await box.sent(call.id)
        #expect(try await box.unsent(at: 1000).isEmpty)
        #expect(try await box.call(call.id) == call)
        try await add(ServiceEvent.failed(id(1), code: "x").body, to: box)
        let number = try #require(try await box.events(after: 0, at: 1, limit: 1).last)
        #expect(try await box.finish(call.id, event: number))
        #expect(try await !box.finish(call.id))
        #expect(try await box.call(call.id) == nil)
        #expect(try await box.events(after: 0, at: 1, limit: 1).events.isEmpty)
        try await box.save(call, body: [1], claiming: [], keptUntil: 1000)
        #expect(try await box.unsent(at: 1001).isEmpty, "no call waits for it any more")
        #expect(try await box.call(call.id) == nil)
    }

    @Test func `a start of a handler is stored, and taken back once where it did not end with the process`() async throws {
        let box = try box()
        try await add(request(1).body, to: box)
        func stored() async throws -> StoredServiceEvent {
            try #require(try await box.events(after: 0, at: 1, limit: 1).events.first)
        }
        let first = try await stored()
        #expect(first.starts == 0)
        try await box.begun(first, atMostOnce: false)
        let second = try await stored()
        #expect(second.starts == 1 && !second.isBegun)
        try await box.begun(second, atMostOnce: true)
        let third = try await stored()
        #expect(third.starts == 2 && third.isBegun)
        for _ in 0..<2 { box.scheduleEnd(of: second, logger: Logger(label: "test")) }
        #expect(try await stored().starts == 1)
    }

    @Test func `another user finds nothing of the one before`() async throws {
        let box = try box()
        let first = try await box.keys(at: 1)
        _ = try await box.trust(of: ServicePeer(app: "a", device: "d"), [1], user: nil, at: 1)
        try await add(ServiceEvent.received(id(1)).body, to: box)
        func become(_ user: String?) async throws {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                box.store.schedule { db in
                    continuation.resume(with: Result { try StoreChange.saveAcceptedUser(user).apply(to: db) })
                }
            }
        }
        try await become("ada")
        let second = try await box.keys(at: 1)
        #expect(second.identity.rawRepresentation != first.identity.rawRepresentation)
        #expect(try await box.events(after: 0, at: 1, limit: 1).events.isEmpty)
        let other = ServicePeer(app: "a", device: "e")
        #expect(try await box.trust(of: other, [2], user: nil, at: 1) == .first)
        try await become("ada")
        #expect(try await box.keys(at: 1).key.name == second.key.name, "the same user keeps it")
    }
}
