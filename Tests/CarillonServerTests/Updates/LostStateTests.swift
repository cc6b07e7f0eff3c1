import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import Testing

@testable import CarillonServer

/// The reports of its devices that a server names as stored, so that the devices notice lost reports.
@Suite(.timeLimit(.minutes(5)))
struct LostStateTests {
    @Test func `each answer to a poll has the revision of the parameters that the server stores`() async throws {
        let world = try await UpdateWorld()
        #expect(try await world.ask().json?["parametersRevision"] == .null)
        let said = try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#, revision: "7"))
        #expect(said["parametersRevision"] == "7")
        // With something to receive, with nothing, and by a poll that only receives.
        try await world.publish(audience: "region == 'north'")
        #expect(try await world.ask()["parametersRevision"] == "7")
        for _ in 0..<3 { #expect(try await world.ask()["parametersRevision"] == "7") }
        #expect(try await world.ask(nil, #""max":0"#)["parametersRevision"] == "7")
        // A proxy repeats an old poll behind a newer one.
        _ = try await world.ask(nil, UpdateWorld.parameters(#""region":"south""#, revision: "5"))
        #expect(try await world.ask()["parametersRevision"] == "5")
        let other = try await world.ask(nil, #""profile":"other""#, position: .some(nil))
        #expect(other.json?["parametersRevision"] == .null, "each profile has parameters of its own")
    }

    @Test func `a waiting poll answers with the report that another one made meanwhile`() async throws {
        let world = try await UpdateWorld()
        _ = try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#, revision: "7"))
        let position = world.first.position.withLock { $0 }
        async let waiting = world.routes.request(
            .post, "/v1/inbox", key: world.first.credential,
            #"{"protocol":1,"kinds":["content"],"position":"\#(position ?? "")","wait":30}"#)
        let id = try #require(DeviceID(world.first.id))
        let serial = try #require(try await world.routes.store.device(id)).serial
        while !world.routes.domain.runtime.sessions.hasWaiters(serial) { await Task.yield() }
        _ = try await world.ask(nil, UpdateWorld.parameters(#""region":"south""#, revision: "5") + #","max":0"#)
        try await world.publish(audience: "region == 'south'")
        #expect(try await waiting["parametersRevision"] == "5")
    }

    @Test func `a position of a later epoch than the home's makes the device fetch everything`() async throws {
        let world = try await UpdateWorld()
        func isResync(_ copy: UpdateWorld.Copy) async throws -> Bool {
            try await world.routes.request(.get, "/v1/updates/\(copy.update)", key: world.sender).json?["resync"]
                == .bool(true)
        }
        let domain = world.routes.domain
        let id = try #require(DeviceID(world.first.id))
        let serial = try #require(try await world.routes.store.device(id)).serial
        try await world.ask()
        let text = try #require(world.first.position.withLock { $0 })
        var position = try domain.inboxPositions.open(text, of: serial)
        let epoch = domain.home.epoch
        func poll(ofEpoch epoch: Int64) async throws -> [UpdateWorld.Copy] {
            position.place = PositionSource(epoch: epoch).next(for: serial)
            return try await world.poll(position: try domain.inboxPositions.seal(position, of: serial))
        }
        #expect(try await poll(ofEpoch: epoch) == [])
        let copies = try await poll(ofEpoch: epoch + 1)
        #expect(copies.count == 1)
        for copy in copies { #expect(try await isResync(copy)) }
    }

    @Test func `a position of an epoch that the home reached after its start is known`() async throws {
        let world = try await UpdateWorld(positionsUsed: 1 << 29 - 1)
        let home = world.routes.domain.home
        let epoch = home.epoch
        let update = try await world.publish()
        #expect(try await world.poll().map(\.update) == [update])
        #expect(home.epoch == epoch + 1)
        #expect(try await world.poll() == [])
    }

    @Test func `a device that omits the kinds receives the ones that the server stores`() async throws {
        let world = try await UpdateWorld()
        func kinds(_ members: String) async throws -> JSONValue? {
            let answer = try await world.routes.request(
                .post, "/v1/inbox", key: world.first.credential, #"{"protocol":1\#(members)}"#)
            #expect(answer.status == 200)
            return answer.json?["kinds"]
        }
        #expect(try await kinds("") == .array([]))
        #expect(try await kinds(#","kinds":["popup","content"]"#) == nil, "it reports them itself")
        #expect(try await kinds("") == .array([.string("content"), .string("popup")]))
    }

    private func said(_ world: UpdateWorld) async throws -> ReportedRevisions {
        let credential = try DeviceRegistrar.credential(world.first.credential)
        let name = DeviceName.id(credential.device, credential: credential.hash)
        let load = PageRequest(after: 0, limit: 10, bytes: 1000)
        return try #require(try await world.routes.store.arrival(of: name, load, at: world.now)).reported
    }

    @Test func `the report of a device has its own revision, until the device reports something else`() async throws {
        let world = try await UpdateWorld()
        func ask(_ method: HTTPRequest.Method, _ body: String) async throws -> RouteFixture.Answer {
            try await world.routes.request(method, "/v1/device", key: world.first.credential, body)
        }
        #expect(try await said(world) == .none)
        let token = #""platform":"apple","pushToken":"aa01""#
        #expect(try await ask(.put, "{\(token),\"revision\":\"r1\"}")["revision"] == "r1")
        #expect(try await said(world) == ReportedRevisions(device: "r1"))
        #expect(try await ask(.patch, #"{"locale":"de","revision":"r2"}"#)["revision"] == "r2")
        #expect(try await ask(.patch, #"{"locale":"fr"}"#).json?["revision"] == nil, "a change without a name has none")
        #expect(try await said(world) == .none)
        #expect(try await ask(.put, "{\(token),\"revision\":\"r3\"}").status == 200)
        for bad in ["\"\"", "\"\(String(repeating: "x", count: 65))\"", "\"ü\"", "7"] {
            #expect(try await ask(.put, "{\(token),\"revision\":\(bad)}").code == "field_invalid", "\(bad)")
        }
        // Another device takes its token: this is not reported again.
        let other = try await world.device()
        let taken = try await world.routes.request(.put, "/v1/device", key: other.credential, "{\(token)}")
        #expect(taken.status == 200)
        let suspended = try await world.routes.request(.get, "/v1/device", key: world.first.credential)
        #expect(suspended["reason"] == "token_taken" && suspended["revision"] == "r3")
        #expect(try await said(world) == ReportedRevisions(device: "r3"))
    }

    @Test func `the user of a device is not part of its report`() throws {
        var profile = DeviceProfile()
        try profile.merge(.object([.init(name: "revision", value: .string("r"))]))
        try profile.merge(.object([.init(name: "userToken", value: .null)]))
        #expect(profile.revision == "r")
    }

    @Test func `offered services have a revision, which nobody else receives, and which is removed with them`() async throws
    {
        let world = try await ServiceWorld()
        let phone = try await world.phone("com.example.app", of: "ada")
        let reader = try await world.phone("com.example.app", of: "ada")
        let keys = String(decoding: ServiceWorld.keys().json.bytes, as: UTF8.self)
        func offer(_ rest: String) async throws -> Int {
            try await world.routes.request(
                .put, "/v1/device/services", key: phone.credential,
                #"{"name":"Files","version":"1","services":[],"keys":\#(keys)\#(rest)}"#
            ).status
        }
        func name() async throws -> String? {
            let load = PageRequest(after: 0, limit: 10, bytes: 1000)
            let credential = try DeviceRegistrar.credential(phone.credential)
            let name = DeviceName.id(credential.device, credential: credential.hash)
            return try await world.routes.store.arrival(of: name, load, at: world.clock.now)?.reported.services
        }
        #expect(try await offer(#","revision":"s1""#) == 204)
        #expect(try await name() == "s1")
        let found = try await world.routes.request(.get, "/v1/services", key: reader.credential)
        #expect(found.status == 200 && !String(decoding: found.body, as: UTF8.self).contains("s1"))
        #expect(try await offer(#","revision":"""#) == 400)
        #expect(try await offer("") == 204)
        #expect(try await name() == nil)
        #expect(try await offer(#","revision":"s2""#) == 204)
        try await world.signIn("bob", on: phone)
        #expect(try await name() == nil, "they were another user's")
        #expect(try await offer(#","revision":"s2""#) == 204)
        #expect(
            try await world.routes.request(.delete, "/v1/device/services", key: phone.credential).status == 204)
        #expect(try await name() == nil)
    }
}
