import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestStores
import Testing

@testable import CarillonServer

/// Servers, front requests and icons by HTTP, with and without permission.
@Suite(.timeLimit(.minutes(5)))
struct ServiceClusterRouteTests {
    private typealias World = ServiceWorld
    private static let files = "com.example.files"
    private static let mail = "com.example.mail"

    private func put(_ phone: World.Phone, of app: String? = nil, _ body: String = "{}", in world: ServiceWorld) async throws
        -> Int
    {
        try await world.routes.request(
            .put, "/v1/apps/\(app ?? phone.app)/servers/\(phone.id)", key: world.routes.admin, body
        ).status
    }

    /// A server that offers a service, a phone of Ada's, and one without a user.
    private func scenario() async throws -> (world: ServiceWorld, server: World.Phone, ada: World.Phone) {
        let world = try await ServiceWorld()
        let server = try await world.phone(Self.files, of: nil)
        let ada = try await world.phone(Self.mail, of: "ada")
        try await world.share("house", Self.mail, Self.files)
        #expect(try await world.offer(server).status == 204)
        return (world, server, ada)
    }

    @Test func `a server is the operator's to name, is called by users of its realm, and by nobody else`() async throws {
        let (world, server, ada) = try await scenario()
        let nobody = try await world.phone(Self.mail, of: nil)
        let elsewhere = try await world.phone("com.example.game", of: "ada")
        #expect(try await world.find(by: ada).isEmpty)
        let own = try await world.routes.request(
            .put, "/v1/apps/\(Self.files)/servers/\(server.id)", key: server.credential, "{}")
        #expect(own.status == 401)
        #expect(try await put(server, of: Self.mail, in: world) == 404, "of another app")
        #expect(try await put(server, in: world) == 200)
        #expect(try await world.find(by: ada) == [server.id])
        #expect(try await world.find("?type=server", by: ada) == [server.id])
        #expect(try await world.find("?type=application", by: ada).isEmpty)
        #expect(try await world.find("?type=x", by: ada) == ["status 400"])
        for stranger in [nobody, elsewhere] {
            #expect(try await world.find(by: stranger).isEmpty)
            #expect(try await world.ask(1, from: stranger, to: server).status == (stranger.id == nobody.id ? 403 : 404))
        }
        #expect(try await world.ask(2, from: ada, to: server).status == 201)
        guard case .request(let header, let from, _, _)? = try await world.events(of: server).first else {
            Issue.record("nothing came")
            return
        }
        #expect(header.user == "ada" && from == ada.peer)
        #expect(
            try await world.ask(3, from: ada, to: server, ["user": .string("bob")]).status == 400,
            "the server determines the user")

        // Its deletion ends the requests that it received, and those that it made.
        let gone = try await world.routes.request(
            .delete, "/v1/apps/\(Self.files)/servers/\(server.id)", key: world.routes.admin)
        #expect(gone.status == 204)
        try await world.sweep()
        #expect(
            try await world.events(of: ada) == [
                .failed(try #require(ServiceRequestID(World.id(2))), code: "application_not_found")
            ])
        #expect(try await world.find(by: ada).isEmpty)
        let again = try await world.routes.request(
            .delete, "/v1/apps/\(Self.files)/servers/\(server.id)", key: world.routes.admin)
        #expect(again.status == 404)
    }

    @Test func `a server finds the devices of the named user, and calls known ones; others cannot`() async throws {
        let (world, server, ada) = try await scenario()
        let bob = try await world.phone(Self.mail, of: "bob")
        let nobody = try await world.phone(Self.mail, of: nil)
        let elsewhere = try await world.phone("com.example.game", of: "ada")
        for phone in [ada, bob, nobody, elsewhere] { try await world.offer(phone) }
        #expect(try await world.find("?device=\(ada.id)", by: server).isEmpty, "it is none yet")
        #expect(try await put(server, in: world) == 200)
        #expect(try await world.find("?user=ada", by: server) == [ada.id])
        #expect(try await world.find("?user=carol", by: server).isEmpty)
        #expect(try await world.find(by: server).isEmpty)
        #expect(try await world.find("?device=\(bob.id)", by: server) == [bob.id])
        #expect(try await world.find("?device=\(bob.id)&user=ada", by: server).isEmpty)
        for stranger in [nobody, elsewhere] { #expect(try await world.find("?device=\(stranger.id)", by: server).isEmpty) }
        #expect(try await world.find("?user=bob", by: ada) == ["status 403"])
        #expect(try await world.ask(1, from: server, to: bob).status == 201)
        guard case .request(let header, _, _, _)? = try await world.events(of: bob).first else {
            Issue.record("nothing came")
            return
        }
        #expect(header.user == nil)
        #expect(try await world.reply(1, by: bob).status == 204)
        #expect(try await world.ask(2, from: server, to: nobody).status == 404)
    }

    @Test func `between devices of users the provider does not receive the user of the consumer`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = (try await world.phone(Self.mail, of: "ada"), try await world.phone(Self.mail, of: "ada"))
        try await world.offer(provider)
        #expect(try await world.ask(1, from: consumer, to: provider).status == 201)
        guard case .request(let header, _, _, _)? = try await world.events(of: provider).first else {
            Issue.record("nothing came")
            return
        }
        #expect(header.user == nil)
    }

    @Test func `a cluster has a limited number of places`() async throws {
        let (world, server, ada) = try await scenario()
        for body in [
            #"{"priority":0}"#, #"{"priority":1001}"#, #"{"port":0}"#, #"{"port":65536}"#, #"{"port":"x"}"#, #"{"host":""}"#,
            #"{"host":"a b"}"#, #"{"colour":"red"}"#,
        ] { #expect(try await put(server, body, in: world) == 400, "\(body)") }
        #expect(try await put(server, #"{"priority":3,"host":"files.example","port":8443}"#, in: world) == 200)
        let found = try await world.routes.request(.get, "/v1/services", key: ada.credential)
        guard case .array(let providers)? = found.json?["providers"], let first = providers.first else {
            Issue.record("nothing was found")
            return
        }
        #expect(first["type"] == .string("server"))
        #expect(first["server"]?["priority"] == .integer(3))
        #expect(first["server"]?["host"] == .string("files.example"))
        #expect(first["server"]?["port"] == .integer(8443))
        // The lower number is first, and among equals the choice is random.
        var others: [World.Phone] = []
        for _ in 0..<2 {
            let other = try await world.phone(Self.files, of: nil)
            try await world.offer(other)
            #expect(try await put(other, in: world) == 200)
            others.append(other)
        }
        var firsts: Set<String> = []
        for _ in 0..<40 {
            let ids = try await world.find(by: ada)
            #expect(ids.last == server.id)
            firsts.insert(ids[0])
        }
        #expect(firsts == Set(others.map(\.id)))
        for _ in 3..<ClusterPlace.mostOfApp { #expect(try await put(world.phone(Self.files, of: nil), in: world) == 200) }
        #expect(try await put(world.phone(Self.files, of: nil), in: world) == 409)
        #expect(try await put(server, in: world) == 200, "it has its place")
        let list = try await world.routes.request(.get, "/v1/apps/\(Self.files)/servers", key: world.routes.admin)
        guard case .array(let servers)? = list.json?["servers"] else {
            Issue.record("no list")
            return
        }
        #expect(servers.count == ClusterPlace.mostOfApp)
    }

    @Test func `a front request reaches a connected device or none, and is not stored`() async throws {
        let world = try await ServiceWorld()
        let consumer = try await world.phone(Self.mail, of: "ada")
        let provider = try await world.phone(Self.files, of: "ada")
        try await world.share("house", Self.mail, Self.files)
        try await world.offer(provider)
        let front: [String: JSONValue?] = [
            "service": .string("com.good.gd.icc"), "version": .string("1.0.0.0"), "method": .string("FRONT_REQ"),
        ]
        let away = try await world.ask(1, from: consumer, to: provider, front)
        #expect(away.status == 409 && away["code"] == "provider_suspended")
        let session = FrontSession()
        world.routes.domain.runtime.sessions.join(session, device: provider.serial)
        #expect(try await world.ask(2, from: consumer, to: provider, front).status == 201)
        #expect(session.offered.withLock { $0.count } == 1)
        for (name, value) in [("version", "2.0"), ("method", "OTHER")] {
            let answer = try await world.ask(3, from: consumer, to: provider, front.merging([name: .string(value)]) { $1 })
            #expect(answer.status == 404, "\(name)")
        }
        #expect(
            try await world.ask(4, from: consumer, to: provider, front.merging(["files": .integer(1)]) { $1 }).status == 413)
        let stranger = try await world.phone(Self.mail, of: "bob")
        #expect(try await world.ask(5, from: stranger, to: provider, front).status == 404)
        session.takes.withLock { $0 = false }
        #expect(try await world.ask(6, from: consumer, to: provider, front).status == 409)
        #expect(session.offered.withLock { $0.count } == 2)
        #expect(try await world.events(of: provider).isEmpty)
        #expect(try await world.reply(2, by: provider).status == 404, "it has no result")
    }

    private final class FrontSession: LiveSession {
        let offered = Mutex<[Envelope]>([])
        let takes = Mutex(true)
        func offer(_ envelope: Envelope) {}
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
            offered.withLock { $0.append(envelope) }
            answer(takes.withLock { $0 })
        }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
        func finished(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) {}
        let notified = Mutex(0)
        func providersChanged() { notified.withLock { $0 += 1 } }
    }

    @Test func `a picture is visible to each device that can call its app`() async throws {
        let world = try await ServiceWorld()
        let (ada, bob) = (try await world.phone(Self.mail, of: "ada"), try await world.phone(Self.mail, of: "bob"))
        let provider = try await world.phone(Self.mail, of: "ada")
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        func offer(_ icon: [UInt8]) async throws -> Int {
            let keys = String(decoding: World.keys().json.bytes, as: UTF8.self)
            return try await world.routes.request(
                .put, "/v1/device/services", key: provider.credential,
                #"{"name":"Files","version":"1","services":[],"keys":\#(keys),"icon":"\#(Base64URL.encode(icon))"}"#
            ).status
        }
        let largest = signature + Array(repeating: 1, count: ServiceIcon.mostBytes - signature.count)
        #expect(try await offer(largest + [1]) == 400)
        #expect(try await offer([0xFF, 0xD8, 0xFF]) == 400, "no PNG")
        #expect(try await offer(largest) == 204)
        let path = "/v1/services/icon?app=\(Self.mail)&device=\(provider.id)"
        let seen = try await world.routes.request(.get, path, key: ada.credential)
        #expect(seen.status == 200)
        #expect(try await world.routes.request(.get, path, key: bob.credential).status == 404)
        #expect(try await world.routes.request(.get, "/v1/services/icon?app=x", key: ada.credential).status == 400)
        #expect(try await world.offer(provider).status == 204)
        #expect(try await world.routes.request(.get, path, key: ada.credential).status == 404, "it has none any more")
    }

    @Test func `a change of a provider is reported to its user's devices, and a repetition is not`() async throws {
        let world = try await ServiceWorld()
        let (ada, bob) = (try await world.phone(Self.mail, of: "ada"), try await world.phone(Self.mail, of: "bob"))
        let provider = try await world.phone(Self.files, of: "ada")
        try await world.share("house", Self.mail, Self.files)
        let (hers, his, own) = (FrontSession(), FrontSession(), FrontSession())
        for (session, phone) in [(hers, ada), (his, bob), (own, provider)] {
            world.routes.domain.runtime.sessions.join(session, device: phone.serial)
        }
        try await world.offer(provider)
        #expect(hers.notified.withLock { $0 } == 1)
        try await world.offer(provider)
        #expect(hers.notified.withLock { $0 } == 1, "the same")
        try await world.offer(provider, [("com.example.other", "3")])
        #expect(hers.notified.withLock { $0 } == 2)
        let withdrawn = try await world.routes.request(.delete, "/v1/device/services", key: provider.credential)
        #expect(withdrawn.status == 204 && hers.notified.withLock { $0 } == 3)
        _ = try await world.routes.request(.delete, "/v1/device/services", key: provider.credential)
        #expect(hers.notified.withLock { $0 } == 3, "there was nothing")
        try await world.offer(provider)
        let gone = try await world.routes.request(.delete, "/v1/device", key: provider.credential)
        #expect(gone.status == 204 && hers.notified.withLock { $0 } == 5)
        #expect(his.notified.withLock { $0 } == 0 && own.notified.withLock { $0 } == 0)
    }

    @Test func `a device is deleted although its requests cannot be ended yet`() async throws {
        let world = try await ServiceWorld()
        let (ada, provider) = (try await world.phone(Self.mail, of: "ada"), try await world.phone(Self.files, of: "ada"))
        try await world.share("house", Self.mail, Self.files)
        try await world.offer(provider)
        #expect(try await world.ask(1, from: ada, to: provider).status == 201)
        let store = world.routes.store
        // The deletion is committed; each later change is refused.
        stores.onCommit(of: store) { stores.refuseChanges(of: store, with: StoreFault(.full, "the disk is full")) }
        let deleted = try await world.routes.request(.delete, "/v1/device", key: provider.credential)
        stores.onCommit(of: store, nil)
        stores.refuseChanges(of: store, with: nil)
        #expect(deleted.status == 204)
        #expect(try await world.events(of: ada).isEmpty)
        try await world.sweep()
        #expect(try await world.events(of: ada).count == 1)
    }
}
