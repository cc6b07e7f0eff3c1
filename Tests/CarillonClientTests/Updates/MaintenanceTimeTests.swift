import CarillonWire
import Foundation
import Synchronization
import Testing

@testable import CarillonClient

/// A maintenance begins and ends by the server's clock, regardless of the phone's clock.
@Suite(.timeLimit(.minutes(5)))
struct MaintenanceTimeTests {
    private typealias Fixture = ProcessingFixture
    private static let minute: Int64 = 60_000

    /// The phone's clock is off by so much when a maintenance is announced that begins in ten minutes, for half an hour.
    private struct Announced {
        let world: Fixture
        let server: Int64
        let worker: UpdateWorker

        init(off: Int64, isNotified: Bool = true) async throws {
            world = try await Fixture()
            server = world.clock.withLock { $0 }
            world.clock.withLock { $0 += off }
            let from = Timestamp3339.text(server + 10 * MaintenanceTimeTests.minute)
            let until = Timestamp3339.text(server + 40 * MaintenanceTimeTests.minute)
            var frame = Fixture.frame("a", "status", #"{"status":"maintenance","from":"\#(from)","until":"\#(until)"}"#)
            if isNotified { (frame.startsIn, frame.endsIn) = (600, 2400) }
            try await world.receive(frame)
            worker = world.worker()
            try await worker.processAll()
        }

        func pass(minutes: Int64, ofWall: Int64? = nil) {
            world.uptime.withLock { $0.milliseconds += minutes * MaintenanceTimeTests.minute }
            world.clock.withLock { $0 += (ofWall ?? minutes) * MaintenanceTimeTests.minute }
        }

        /// Processes the due updates. Returns whether the maintenance is under way.
        func isUnderWay() async throws -> Bool {
            _ = try await worker.advanceMaintenance()
            let isUnderWay = try await world.inbox.maintenance()?.hasBegun == true
            #expect(isUnderWay == (world.content.content.mode == .offline))
            return isUnderWay
        }
    }

    @Test(arguments: [0, 60, -60, 60 * 24 * 300] as [Int64])
    func `a phone with a wrong clock is offline at the same time as the server`(_ minutes: Int64) async throws {
        let announced = try await Announced(off: minutes * Self.minute)
        #expect(try await !announced.isUnderWay())
        #expect(try await announced.worker.seconds(until: announced.server + 10 * Self.minute) == 600)
        announced.pass(minutes: 9)
        #expect(try await !announced.isUnderWay())
        announced.pass(minutes: 1)
        #expect(try await announced.isUnderWay())
        // The clock is corrected meanwhile.
        announced.pass(minutes: 29, ofWall: 29 - minutes)
        #expect(try await announced.isUnderWay())
        announced.pass(minutes: 1)
        #expect(try await !announced.isUnderWay())
        #expect(try await announced.world.inbox.maintenance() == nil)
    }

    @Test(arguments: [60, -60] as [Int64])
    func `after a start of the phone its clock is corrected by the measured difference`(
        _ minutes: Int64
    )
        async throws
    {
        let announced = try await Announced(off: minutes * Self.minute)
        announced.world.uptime.withLock { $0 = .init(milliseconds: 9_000_000, boot: "second") }
        announced.world.clock.withLock { $0 += 9 * Self.minute }
        #expect(try await !announced.isUnderWay())
        announced.world.clock.withLock { $0 += Self.minute }
        #expect(try await announced.isUnderWay())
        announced.world.clock.withLock { $0 += 30 * Self.minute }
        #expect(try await !announced.isUnderWay())
    }

    @Test func `a maintenance that has ended by the server's clock is not entered`() async throws {
        let world = try await Fixture()
        let server = world.clock.withLock { $0 }
        world.clock.withLock { $0 -= 60 * Self.minute }
        var frame = Fixture.frame(
            "a", "status", #"{"status":"maintenance","until":"\#(Timestamp3339.text(server - Self.minute))"}"#)
        frame.endsIn = -60
        try await world.receive(frame)
        try await world.worker().processAll()
        #expect(try await world.inbox.maintenance() == nil && world.content.content.mode != .offline)
    }

    @Test func `for an earlier server without seconds, the phone's clock counts`() async throws {
        let announced = try await Announced(off: -60 * Self.minute, isNotified: false)
        announced.pass(minutes: 10)
        #expect(try await !announced.isUnderWay())
        announced.pass(minutes: 60)
        #expect(try await announced.isUnderWay())
    }

    @Test func `a measurement ends with its owner, and a later announcement measures again`() async throws {
        let announced = try await Announced(off: 60 * Self.minute)
        let measured = try #require(try await announced.world.inbox.serverTime())
        #expect(measured.server == announced.server && measured.wall == announced.server + 60 * Self.minute)
        try await announced.world.inbox.setOwner(UpdateOwner(device: "e", user: "", profile: ""))
        #expect(try await announced.world.inbox.serverTime() == nil)
        let earlier = ServerTime(server: 1000, wall: 5000, uptime: .init(milliseconds: 70, boot: "b"))
        #expect(earlier.now(wall: 9000, uptime: .init(milliseconds: 90, boot: "b")) == 1020)
        #expect(earlier.now(wall: 9000, uptime: .init(milliseconds: 90, boot: "c")) == 5000)
        #expect(earlier.now(wall: 9000, uptime: .init(milliseconds: 60, boot: "b")) == 5000, "no start has two")
        let (first, second) = (DeviceClock.system.uptime(), DeviceClock.system.uptime())
        #expect(first.milliseconds > 0 && second.milliseconds >= first.milliseconds && first.boot == second.boot)
    }

    @Test func `an answer to a poll has the seconds of its frames`() throws {
        let frame =
            #"{"messageType":"update","version":"v","attempt":1,"entry":1,"startsIn":-5,"endsIn":60,"update":{"id":"a"}}"#
        let answer = try #require(
            UpdatePoll.answer(Array(#"{"envelopes":[\#(frame)],"more":false,"position":"p"}"#.utf8)))
        #expect(answer.updates.map(\.startsIn) == [-5] && answer.updates.map(\.endsIn) == [60])
    }
}
