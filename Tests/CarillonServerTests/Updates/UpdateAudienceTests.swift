import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Devices that leave audiences and return to them.
@Suite(.timeLimit(.minutes(5)))
struct UpdateAudienceTests {
    private static func region(_ name: String, _ revision: String) -> String {
        UpdateWorld.parameters(#""region":"\#(name)""#, revision: revision)
    }

    private func sign(_ user: String?, in world: UpdateWorld) async throws {
        _ = try await world.routes.request(.patch, "/v1/device", key: world.first.credential, #"{"locale":"de"}"#)
        try await stores.setUser(user, in: world.routes.store)
        world.first.position.withLock { $0 = nil }
    }

    @Test func `a device that changes its region with each poll receives nothing of the region that it left`() async throws {
        let world = try await UpdateWorld()
        try await world.publish(audience: "region == 'north'")
        let sweeper = Task {
            while !Task.isCancelled { try await world.sweep() }
        }
        for change in 0..<400 {
            let isNorth = change.isMultiple(of: 2)
            let members = Self.region(isNorth ? "north" : "east", "\(change)")
            let copies = try await world.poll(nil, members + (isNorth ? #","max":0"# : ""), position: .some(nil))
            #expect(copies.isEmpty, "change \(change)")
            if !copies.isEmpty { break }
        }
        sweeper.cancel()
        _ = try? await sweeper.value
    }

    // MARK: In one transaction

    /// Changes a world, and checks the state that each commit of the change leaves on disk.
    private func eachCommit(_ prepare: (UpdateWorld) async throws -> Void, _ act: (UpdateWorld) async throws -> Void)
        async throws
    {
        let kept = try await stores.openKept()
        let world = try await UpdateWorld(store: kept)
        try await prepare(world)
        #expect(try await stores.countOrphanedEnvelopes(in: kept) == 0)
        let snapshots = Snapshots(of: kept)
        snapshots.begin()
        try await act(world)
        snapshots.end()
        try await stores.close(kept)
        #expect(!snapshots.taken.isEmpty)
        for (number, snapshot) in snapshots.taken.enumerated() {
            let store = try await stores.openCopy(snapshot.copy)
            #expect(try await stores.countDueAgain(in: store) == 0, "commit \(number) leaves it due")
            #expect(try await stores.countOrphanedEnvelopes(in: store) == 0, "commit \(number) leaves it in the inbox")
            try await stores.close(store)
        }
    }

    @Test func `an update of an audience that a device left ends with its envelope`() async throws {
        try await eachCommit { (world: UpdateWorld) async throws in
            try await world.publish(audience: "region == 'north'")
            try await world.ask(nil, Self.region("north", "1") + #","max":0"#)
        } _: { (world: UpdateWorld) async throws in
            #expect(try await world.poll(nil, Self.region("east", "2")).isEmpty)
            #expect(try await stores.count(.completions, in: world.routes.store) == 0)
        }
    }

    @Test func `an update that a device received and waits for again ends with its envelope when it leaves`() async throws {
        try await eachCommit { (world: UpdateWorld) async throws in
            try await world.publish(audience: "region == 'north'")
            let copies = try await world.poll(nil, Self.region("north", "1"))
            try await world.ask(nil, UpdateWorld.result(try #require(copies.first), "failed") + #","max":0"#)
        } _: { (world: UpdateWorld) async throws in
            #expect(try await world.poll(nil, Self.region("east", "2")).isEmpty)
            #expect(try await stores.statesOfLeft(in: world.routes.store) == [15])
        }
    }

    @Test func `an update of a kind that the device does not process any more ends with its envelope`() async throws {
        try await eachCommit { (world: UpdateWorld) async throws in
            try await world.publish("popup", #"{"style":"failure","title":"t"}"#)
            try await world.ask(nil, #""max":0"#)
        } _: { (world: UpdateWorld) async throws in
            #expect(try await world.poll(kinds: ["content"]).isEmpty)
        }
    }

    @Test func `content that later content replaces ends with its envelope`() async throws {
        let refresh = #"{"action":"refresh","object":"a"}"#
        try await eachCommit { (world: UpdateWorld) async throws in
            try await world.publish("content", refresh)
            try await world.ask(nil, #""max":0"#)
        } _: { (world: UpdateWorld) async throws in
            let later = try await world.publish("content", refresh)
            #expect(try await world.poll().map(\.update) == [later])
        }
    }

    @Test func `content ends with its envelope when the device is to fetch everything`() async throws {
        try await eachCommit { (world: UpdateWorld) async throws in
            try await world.goBack()
        } _: { (world: UpdateWorld) async throws in
            #expect(try await !world.poll().isEmpty)
            #expect(try await stores.countCompletions(because: "absorbed", in: world.routes.store) == 1)
        }
    }

    // MARK: Received updates, and others

    @Test func `an update that was never received is forgotten, however often its user signed out`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "region == 'east'")
        try await sign("anna", in: world)
        try await world.ask(nil, Self.region("east", "1") + #","max":0"#)
        for round in 1...2 {
            try await sign(nil, in: world)
            try await world.ask(nil, #""max":0"#)
            try await world.sweep()
            try await sign("anna", in: world)
            try await world.ask(nil, Self.region("east", "r\(round)") + #","max":0"#)
        }
        #expect(try await stores.mostAttempts(in: world.routes.store) > 1)
        #expect(try await world.poll(nil, Self.region("west", "2")).isEmpty)
        try await world.sweep()
        #expect(try await world.poll().isEmpty)
        #expect(try await world.counts(update) == [:])
    }

    @Test func `a failed update is not delivered again to a device that left, until it returns`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "region == 'north'")
        var copies = try await world.poll(nil, Self.region("north", "1"))
        for _ in 1...2 { copies = try await world.poll(nil, UpdateWorld.result(try #require(copies.first), "failed")) }
        #expect(try await world.counts(update) == ["failed": 1])
        try await world.ask(nil, Self.region("east", "2"))
        world.advance(seconds: 30)
        try await world.sweep()
        #expect(try await world.poll().isEmpty)
        #expect(try await world.counts(update) == ["gone": 1])
        copies = try await world.poll(nil, Self.region("north", "3"))
        #expect(copies.map(\.attempt) == [3])
        // It leaves once more, before it receives that.
        #expect(try await world.poll(nil, Self.region("east", "4"), position: .some(nil)).isEmpty)
        #expect(try await world.counts(update) == ["gone": 1])
        copies = try await world.poll(nil, Self.region("north", "5"))
        try await world.ask(nil, UpdateWorld.result(try #require(copies.first)))
        #expect(try await world.counts(update) == ["done": 1])
    }

    @Test func `a device can complete a received update after it left`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "region == 'north'")
        let copies = try await world.poll(nil, Self.region("north", "1"))
        try await world.ask(nil, Self.region("east", "2"))
        #expect(try await world.counts(update) == ["stored": 1])
        try await world.ask(nil, UpdateWorld.result(try #require(copies.first)))
        #expect(try await world.counts(update) == ["done": 1])
    }

    @Test func `an earlier entry of a standing update is not delivered again when another begins`() async throws {
        let world = try await UpdateWorld()
        try await world.publish(audience: "region == 'north'", #","mode":"standing""#)
        var copies = try await world.poll(nil, Self.region("north", "1"))
        for _ in 1...2 { copies = try await world.poll(nil, UpdateWorld.result(try #require(copies.first), "failed")) }
        try await world.ask(nil, Self.region("east", "2"))
        #expect(try await world.poll(nil, Self.region("north", "3")).map(\.entry) == [2])
        world.advance(seconds: 30)
        try await world.sweep()
        #expect(try await world.poll().isEmpty)
    }

    @Test func `a requeued update is not delivered to a device that left`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "region == 'north'")
        let copies = try await world.poll(nil, Self.region("north", "1"))
        try await world.ask(nil, UpdateWorld.result(try #require(copies.first), "failed", #","permanent":true"#))
        try await world.ask(nil, Self.region("east", "2"))
        _ = try await world.routes.request(.post, "/v1/updates/\(update)/requeue", key: world.sender)
        #expect(try await world.poll().isEmpty)
        #expect(try await world.counts(update) == ["gone": 1])
    }

    @Test func `a requeued update is not delivered to a device that does not know the kind any more`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish("popup", #"{"style":"failure","title":"t"}"#)
        let copies = try await world.poll()
        try await world.ask(nil, UpdateWorld.result(try #require(copies.first), "failed", #","permanent":true"#))
        try await world.ask(kinds: ["content"])
        _ = try await world.routes.request(.post, "/v1/updates/\(update)/requeue", key: world.sender)
        #expect(try await world.poll(kinds: ["content"]).isEmpty)
        #expect(try await world.counts(update) == ["unsupported": 1])
        #expect(try await world.poll().map(\.update) == [update])
    }

    @Test(arguments: ["left", "unsupported"])
    func `an update that a device does not receive any more delays nothing of its order key`(end: String) async throws {
        let world = try await UpdateWorld()
        let popup = #"{"style":"failure","title":"t"}"#
        try await world.publish("popup", popup, audience: "region == 'north'", #","orderKey":"k""#)
        let next = try await world.publish(#","orderKey":"k""#)
        var copies = try await world.poll(nil, Self.region("north", "1"))
        for _ in 1...2 { copies = try await world.poll(nil, UpdateWorld.result(try #require(copies.first), "failed")) }
        if end == "left" {
            try await world.ask(nil, Self.region("east", "2"))
            world.advance(seconds: 30)
            try await world.sweep()
            #expect(try await world.poll().map(\.update) == [next])
        } else {
            #expect(try await world.poll(kinds: ["content"]).map(\.update) == [next])
        }
    }

    @Test func `an update that waits behind another is not delivered to a device that left meanwhile`() async throws {
        let world = try await UpdateWorld()
        try await world.publish(#","orderKey":"k""#)
        let next = try await world.publish("content", nil, audience: "region == 'north'", #","orderKey":"k""#)
        let copies = try await world.poll(nil, Self.region("north", "1"))
        try await world.ask(nil, Self.region("east", "2"))
        #expect(try await world.poll(nil, UpdateWorld.result(try #require(copies.first))).isEmpty)
        #expect(try await world.counts(next) == [:])
    }
}

extension UpdateWorld {
    /// Returns the first device to a position that is older than that of its last poll, while content waits for it.
    fileprivate func goBack() async throws {
        try await publish()
        try await ask(nil, #""max":0"#)
        let before = first.position.withLock { $0 }
        let copies = try await poll()
        try await ask(nil, UpdateWorld.result(try #require(copies.first)))
        try await publish()
        try await ask(nil, #""max":0"#)
        first.position.withLock { $0 = before }
    }
}
