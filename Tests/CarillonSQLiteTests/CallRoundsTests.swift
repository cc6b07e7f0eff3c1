import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import Logging
import Synchronization
import Testing

/// The rounds over a real store and a clock that the test turns.
@Suite(.timeLimit(.minutes(3)))
struct CallRoundsTests {
    private final class Clock: Sendable {
        private let milliseconds = Mutex(WatchFixture.start.milliseconds)
        var now: Timestamp {
            get { Timestamp(milliseconds: milliseconds.withLock { $0 }) }
            set { milliseconds.withLock { $0 = newValue.milliseconds } }
        }
    }

    private struct World {
        let clock = Clock()
        let fixture: WatchFixture
        let sealer = SecretSealer(
            keys: [TokenKey(id: 1, bytes: Array(repeating: 3, count: 32))],
            random: RandomSource { UInt64.random(in: .min ... .max) })
        let random = RandomSource { UInt64.random(in: .min ... .max) }

        init() async throws { fixture = try await WatchFixture(.memory) }

        /// As after a start of the server: nothing but the store is what it was.
        func makeRounds() -> CallRounds {
            let clock = clock
            let time = TimeSource { clock.now }
            let sessions = LiveSessions()
            let writer = InboxWriter(
                store: fixture.store, sessions: sessions, scheduler: Scheduler { _, work in work() },
                logger: Logger(label: "test"))
            let inbox = Inbox(
                store: fixture.store, writer: writer, sessions: sessions, positions: PositionSource(after: 0),
                time: time, random: random)
            return CallRounds(
                watches: fixture.store, news: ChannelNews(inbox: inbox, time: time), sealer: sealer, time: time,
                random: random)
        }

        func sealed(_ channel: PushChannel) throws -> Watch.Sealed {
            Watch.Sealed(
                secret: try sealer.seal(Array(repeating: 9, count: 32), for: channel.serial),
                token: try sealer.seal(Array("the token".utf8), for: channel.serial))
        }

        func watch(_ channel: PushChannel, _ address: String, every seconds: Int = 60) async throws {
            let ping = Watch.Ping(address: try CallAddress(address), intervalSeconds: seconds)
            let due = PingMachine.firstDue(every: seconds, at: clock.now, chance: random.next())
            let wish = WatchWish(
                channel: channel.serial, ping: ping, firstDueAt: due, disconnectAddress: nil,
                sealed: try sealed(channel), callbackID: "msg_\(channel.serial.rawValue)", renewsSecret: false)
            _ = try await fixture.store.putWatch(wish, at: clock.now)
        }

        /// As many channels, each with a back end of its own.
        func watch(count: Int, every seconds: Int) async throws {
            try await withThrowingDiscardingTaskGroup { group in
                for number in 0..<count {
                    group.addTask {
                        let channel = try await StoreFixture.open(
                            UInt64(1000 + number), of: fixture.base.device, in: fixture.store, limit: .max)
                        try await watch(channel, "http://host\(number).example", every: seconds)
                    }
                }
            }
        }
    }

    @Test func `a failure reaches the channel's inbox once, and so does recovery`() async throws {
        let world = try await World()
        let channel = world.fixture.base.first
        try await world.watch(channel, "https://example.com/ping")
        let rounds = world.makeRounds()
        let failed = CallResult.failed(.noConnection, detail: "no")
        var seen: [[Envelope.Kind]] = []
        for result in [failed, failed, .answered(status: 410), .answered(status: 204), .answered(status: 204)] {
            world.clock.now = world.clock.now.adding(seconds: 400)
            let call = try #require(try await rounds.due(limit: 9).first)
            #expect(call.token == "the token")
            #expect(call.content == .ping)
            #expect(call.secret.bytes == Array(repeating: 9, count: 32))
            try await rounds.ended(call, result)
            seen.append(try await world.fixture.base.waiting(at: world.clock.now).map(\.kind))
        }
        #expect(
            seen == [
                [.pingFailed(.noConnection)], [.pingFailed(.noConnection)], [.pingFailed(.tokenLost)], [.recovered],
                [.recovered],
            ])
        let watch = try #require(try await world.fixture.store.watch(of: channel.serial))
        #expect(watch.lastPing?.failure == nil)
    }

    @Test func `every ping has another name, and a repeated callback has the same`() async throws {
        let world = try await World()
        try await world.watch(world.fixture.base.first, "https://example.com/ping")
        let rounds = world.makeRounds()
        var ids: Set<String> = []
        for _ in 0..<3 {
            world.clock.now = world.clock.now.adding(seconds: 400)
            let call = try #require(try await rounds.due(limit: 9).first)
            ids.insert(call.id)
            try await rounds.ended(call, .answered(status: 200))
        }
        #expect(ids.count == 3)

        let second = world.fixture.base.second
        let wish = WatchWish(
            channel: second.serial, ping: nil, firstDueAt: nil, disconnectAddress: try CallAddress("http://b.example"),
            sealed: try world.sealed(second), callbackID: "msg_same", renewsSecret: false)
        _ = try await world.fixture.store.putWatch(wish, at: world.clock.now)
        _ = try await world.fixture.store.deleteDevice(second.device, at: world.clock.now)
        for result in [CallResult.answered(status: 500), .failed(.noConnection, detail: ""), .answered(status: 200)] {
            let call = try #require(try await rounds.due(limit: 9).first)
            #expect(call.id == "msg_same")
            #expect(call.token == "the token")
            guard case .disconnected(.deviceDeleted, _) = call.content else {
                Issue.record("\(call.content) is not the end of the channel")
                return
            }
            try await rounds.ended(call, result)
            world.clock.now = world.clock.now.adding(seconds: 60)
        }
        world.clock.now = world.clock.now.adding(seconds: 86_400)
        #expect(try await rounds.due(limit: 9).isEmpty)
    }

    /// Each watch has a back end of its own, so that nothing but the schedule spreads the calls.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["CARILLON_SANITIZED"] == nil, "it is about numbers, not threads"))
    func `ten thousand watches make no burst, at first, later, or after the server was away`() async throws {
        let world = try await World()
        let watches = 10_000
        let interval = 60
        try await world.watch(count: watches, every: interval)
        let natural = watches / interval
        let first = try await run(world, seconds: 110, pace: CallPace(limits: .init(underWay: 64, perSecond: 500)))
        #expect(first.perSecond.max() ?? 0 <= natural * 2, "calls per second: \(first.perSecond)")
        #expect(first.pinged.count == watches)
        #expect(first.perSecond.reduce(0, +) >= watches * 3 / 2)

        world.clock.now = world.clock.now.adding(seconds: 7200)
        let second = try await run(world, seconds: 70, pace: CallPace(limits: .init(underWay: 64, perSecond: 500)))
        #expect(second.perSecond.max() ?? 0 <= natural * 2, "calls per second: \(second.perSecond)")
        #expect(second.pinged.count == watches, "each was pinged within one interval of the start")
    }

    @Test func `without spreading, the pace alone still holds`() async throws {
        let world = try await World()
        try await world.watch(count: 500, every: 86_400)
        world.clock.now = world.clock.now.adding(seconds: 86_400)
        let run = try await run(
            world, seconds: 15, pace: CallPace(limits: .init(underWay: 64, perSecond: 50)), begins: false)
        #expect(run.perSecond.max() ?? 0 <= 60)
        #expect(run.pinged.count == 500)
    }

    private struct Run {
        var perSecond: [Int] = []
        var pinged: Set<String> = []
    }

    /// Lets a server's time pass in steps of a tenth of a second; every call takes one step.
    private func run(_ world: World, seconds: Int, pace: CallPace, begins: Bool = true) async throws -> Run {
        var pace = pace
        let rounds = world.makeRounds()
        if begins { try await rounds.begin() }
        var result = Run()
        for _ in 0..<seconds {
            var count = 0
            for _ in 0..<10 {
                let calls = try await rounds.due(limit: pace.room(at: world.clock.now))
                pace.began(calls.count)
                count += calls.count
                world.clock.now = world.clock.now.adding(milliseconds: 100)
                try await withThrowingDiscardingTaskGroup { group in
                    for call in calls {
                        group.addTask { try await rounds.ended(call, .answered(status: 200)) }
                    }
                }
                for call in calls {
                    pace.ended()
                    result.pinged.insert(call.address.peer)
                }
            }
            result.perSecond.append(count)
        }
        return result
    }
}
