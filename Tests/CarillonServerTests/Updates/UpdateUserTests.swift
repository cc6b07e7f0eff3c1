import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestStores
import Testing

@testable import CarillonServer

/// Users, and profiles, of one device.
struct UpdateUserTests {
    private func sign(_ user: String?, in world: UpdateWorld) async throws {
        try await world.signIn(user, on: world.first)
        world.first.position.withLock { $0 = nil }
    }

    @Test func `an update for a user is not delivered to the next user, and waits for the return of the first one`()
        async throws
    {
        let world = try await UpdateWorld()
        try await sign("anna", in: world)
        let update = try await world.publish(audience: "user == 'anna'")
        try await world.ask(nil, #""max":0"#)
        #expect(try await world.counts(update) == ["waiting": 1])
        try await sign("bert", in: world)
        #expect(try await world.poll().isEmpty)
        try await world.sweep()
        #expect(try await world.counts(update) == ["gone": 1])
        let inbox = try await world.routes.request(.get, "/v1/inbox?carillon=5", key: world.first.credential)
        let waiting = inbox.json?["envelopes"]
        #expect(waiting == .array([]))
        await world.routes.domain.runtime.inbox.flush()
        #expect(try await stores.count(.envelopes, in: world.routes.store) == 0)
        try await world.sweep()
        #expect(try await stores.countStaleBindings(in: world.routes.store) == 0)
        try await sign("anna", in: world)
        #expect(try await world.poll().map(\.update) == [update])
        #expect(try await world.counts(update) == ["waiting": 1])
    }

    @Test func `an update that a user had received and not finished is delivered again when the user is back`() async throws
    {
        let world = try await UpdateWorld()
        try await sign("anna", in: world)
        let update = try await world.publish()
        let copies = try await world.poll()
        try await world.ask()
        #expect(try await world.counts(update) == ["stored": 1])
        try await sign(nil, in: world)
        #expect(try await world.poll().map(\.entry) == [1])
        try await world.sweep()
        try await sign("anna", in: world)
        #expect(try await world.poll().map(\.attempt) == [copies[0].attempt + 1])
    }

    @Test func `content that expires while its user is away is made up for when he is back`() async throws {
        let world = try await UpdateWorld()
        try await sign("anna", in: world)
        _ = try await world.publish(#","ttl":60"#)
        #expect(try await world.poll().count == 1)
        try await world.ask()
        try await sign(nil, in: world)
        try await world.ask()
        try await world.sweep()
        world.advance(seconds: 61)
        try await world.sweep()
        try await sign("anna", in: world)
        let copies = try await world.poll()
        #expect(copies.count == 1 && copies.first?.kind == "content")
        let shown = try await world.routes.request(
            .get, "/v1/updates/\(copies.first?.update ?? "")", key: world.sender)
        #expect(shown.json?["resync"] == .bool(true))
        #expect(try await world.poll(nil, UpdateWorld.result(try #require(copies.first))).isEmpty, "once")
        world.advance(seconds: 10)
        try await sign(nil, in: world)
        try await world.ask()
        try await world.sweep()
        try await sign("anna", in: world)
        #expect(try await world.poll().isEmpty, "nothing expired meanwhile")
    }

    @Test func `content that expires at once when its user signs out is made up for, too`() async throws {
        let world = try await UpdateWorld()
        try await sign("anna", in: world)
        let update = try await world.publish(#","ttl":60"#)
        #expect(try await world.poll().count == 1)
        try await world.ask()
        #expect(try await world.counts(update) == ["stored": 1])
        try await sign(nil, in: world)
        try await world.ask()
        world.advance(seconds: 61)
        try await world.sweep()
        try await sign("anna", in: world)
        #expect(try await world.poll().first.map { $0.update != update } == true)
    }

    @Test func `content that is forgotten while its user is away is made up for when he is back`() async throws {
        let world = try await UpdateWorld(limits: .init(endedSeconds: 600))
        try await sign("anna", in: world)
        _ = try await world.publish(#","ttl":60"#)
        _ = try await world.poll()
        try await world.ask()
        try await sign(nil, in: world)
        try await world.ask()
        try await world.sweep()
        for seconds in [61, 700] as [Int64] {
            world.advance(seconds: seconds)
            try await world.sweep()
        }
        #expect(try await stores.count(.completions, in: world.routes.store) == 0)
        try await sign("anna", in: world)
        #expect(try await world.poll().count == 1)
        #expect(try await stores.countResyncs(in: world.routes.store) == 1)
    }

    /// - Parameter says: The result of an update from before the sign-out.
    @Test(arguments: [nil, "done", "deferred"])
    func `content that a user had and that expired is made up for when he is back, unless he was done`(
        says: String?
    ) async throws {
        let world = try await UpdateWorld()
        try await sign("anna", in: world)
        _ = try await world.publish(#","ttl":60"#)
        let copy = try #require(try await world.poll().first)
        try await world.ask()
        world.advance(seconds: 61)
        try await world.sweep()
        if let says { try await world.ask(nil, UpdateWorld.result(copy, says)) }
        for round in 0..<2 {
            try await sign("bert", in: world)
            try await world.ask(position: .some(nil))
            try await sign("anna", in: world)
            let copies = try await world.poll(position: .some(nil))
            #expect(copies.count == (says == "done" || round > 0 ? 0 : 1), "\(copies)")
            try await world.ask(nil, copies.first.map { UpdateWorld.result($0) } ?? "")
        }
    }

    @Test func `an update that waited behind another one waits behind it when its user is back`() async throws {
        let world = try await UpdateWorld()
        try await sign("anna", in: world)
        var updates: [String] = []
        for _ in 0..<3 { updates.append(try await world.publish(#","orderKey":"k""#)) }
        #expect(try await world.poll().map(\.update) == [updates[0]])
        try await world.ask()
        try await sign(nil, in: world)
        try await world.ask()
        try await world.sweep()
        try await sign("anna", in: world)
        for update in updates {
            let copies = try await world.poll()
            #expect(copies.map(\.update) == [update])
            try await world.ask(nil, UpdateWorld.result(try #require(copies.first)) + #","max":0"#)
        }
    }

    @Test func `the location of a user is forgotten at the sign-out`() async throws {
        let world = try await UpdateWorld()
        try await sign("anna", in: world)
        try await world.ask(nil, UpdateWorld.parameters(#""place":{"latitude":48.2,"longitude":16.4},"region":"north""#))
        let store = world.routes.store
        #expect(try await stores.countLocatedBindings(in: store) == 1)
        try await sign(nil, in: world)
        try await world.ask()
        #expect(try await stores.countLocatedBindings(in: store) == 0)
        #expect(try await stores.countBindings(withParameters: "north", in: store) == 1)
    }

    @Test func `a result of one user is not reported for the next one`() async throws {
        let world = try await UpdateWorld()
        try await sign("anna", in: world)
        try await world.ask(
            nil, UpdateWorld.parameters(#""region":"north","place":{"latitude":48.2,"longitude":16.4}"#))
        try await world.publish(audience: "region == 'north'")
        try await sign("bert", in: world)
        #expect(try await world.poll().isEmpty)
        #expect(try await stores.countLocatedBindings(in: world.routes.store) == 0)
        try await sign("anna", in: world)
        #expect(try await world.poll().count == 1)
        try await world.publish(audience: "within(place, 48.2, 16.4, 50000.0)")
        // Where she was is forgotten with the signing out.
        #expect(try await world.poll().isEmpty)
    }

    @Test func `profiles of a device have completions and positions of their own, one at a time`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        let one = try await world.poll(nil, #""profile":"a""#, position: .some(nil))
        let position = world.first.position.withLock { $0 }
        try await world.ask(nil, #""profile":"b""#, position: .some(position), expecting: 400)
        let two = try await world.poll(nil, #""profile":"b""#, position: .some(nil))
        #expect(one.map(\.update) == [update] && two.map(\.update) == [update])
        #expect(one.map(\.version) != two.map(\.version))
        try await world.ask(nil, #""profile":"b","# + UpdateWorld.result(two[0]))
        #expect(try await world.counts(update)["done"] == 1)
        // The updates of the first user belong to it again.
        let again = try await world.poll(nil, #""profile":"a""#, position: .some(nil))
        #expect(again.map(\.update) == [update])
        try await world.ask(nil, #""profile":"a","# + UpdateWorld.result(again[0]))
        #expect(try await world.counts(update) == ["done": 2])
    }

    @Test func `a device has a hundred profiles`() async throws {
        let world = try await UpdateWorld()
        for number in 0..<UpdateBinding.mostOfDevice {
            try await world.ask(nil, #""profile":"\#(number)""#, position: .some(nil))
            world.advance(seconds: 1)
        }
        // The least recently used profile is removed.
        try await world.ask(nil, #""profile":"0""#, position: .some(nil))
        world.advance(seconds: 1)
        try await world.ask(nil, #""profile":"more""#, position: .some(nil))
        #expect(
            try await world.profiles()
                == Set((0..<UpdateBinding.mostOfDevice).map(String.init) + ["more"]).subtracting(["1"]))
        try await world.ask(nil, #""profile":"1""#, position: .some(nil))
        #expect(try await world.profiles().count == UpdateBinding.mostOfDevice)
        #expect(try await !world.profiles().contains("2"))
    }

    @Test func `a profile with something unfinished makes no room`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        for number in 0..<UpdateBinding.mostOfDevice {
            // An update that was not received is unfinished; the last profiles processed it.
            let copies = try await world.poll(nil, #""profile":"\#(number)""#, position: .some(nil))
            world.advance(seconds: 1)
            #expect(copies.map(\.update) == [update])
            if number >= 98 {
                try await world.ask(nil, #""profile":"\#(number)","# + UpdateWorld.result(try #require(copies.first)))
            }
        }
        try await world.sweep()
        try await world.ask(nil, #""profile":"more""#, position: .some(nil))
        #expect(try await !world.profiles().contains("98"))
        _ = try await world.poll(nil, #""profile":"other""#, position: .some(nil))
        #expect(try await !world.profiles().contains("99"))
        let answer = try await world.ask(nil, #""profile":"third""#, position: .some(nil), expecting: 409)
        #expect(answer.code == "profiles_too_many")
        // Without its update nothing is unfinished.
        try await world.withdraw(update)
        try await world.sweep()
        try await world.ask(nil, #""profile":"third""#, position: .some(nil))
        #expect(try await !world.profiles().contains("0"))
    }

    @Test(arguments: [false, true])
    func `a poll of a device that is deleted meanwhile gets credential_invalid`(_ isWholeApp: Bool) async throws {
        let world = try await UpdateWorld()
        let domain = world.routes.domain
        let id = try #require(DeviceID(world.first.id))
        let device = try await domain.devices.find(id)
        if isWholeApp {
            try await domain.deleteApp(try #require(AppID("com.example.app")))
        } else {
            let answer = try await world.routes.request(.delete, "/v1/device", key: world.first.credential)
            #expect(answer.status == 204)
        }
        let fault = await #expect(throws: Refusal.self) { try await domain.updateDelivery.binding(of: device, profile: "") }
        #expect(fault?.code == .credentialInvalid)
    }

    @Test func `the hundredth user of a shared device is served, and so is the first when he returns`() async throws {
        let world = try await UpdateWorld()
        for number in 0..<UpdateBinding.mostOfDevice + 20 {
            try await sign("user\(number)", in: world)
            try await world.ask()
            world.advance(seconds: 1)
        }
        try await sign("user0", in: world)
        try await world.ask(nil, #""profile":"new""#, position: .some(nil))
        #expect(try await stores.count(.bindings, in: world.routes.store) == UpdateBinding.mostOfDevice)
    }

    @Test func `nothing of a device stays when it is deleted`() async throws {
        let world = try await UpdateWorld()
        try await world.publish()
        _ = try await world.poll()
        #expect(try await world.routes.request(.delete, "/v1/device", key: world.first.credential).status == 204)
        for rows in [StoredRows.bindings, .completions] {
            #expect(try await stores.count(rows, in: world.routes.store) == 0)
        }
    }
}
