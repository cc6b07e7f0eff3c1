import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import GRDB
import Logging
import StoreConformance
import Synchronization
import TestStores
import TestSupport
import Testing

/// The rounds over a real store and a clock that the test turns. Ten thousand watches take more time than other tests.
@Suite(.timeLimit(.minutes(20)))
struct LeasedWorkTests {
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
            keys: [TokenKey(id: 1, bytes: Array(repeating: 3, count: 32))], for: .watch,
            random: RandomSource { UInt64.random(in: .min ... .max) })
        let random: RandomSource = {
            let seeded = Mutex(SeededRandom.forTest("LeasedWorkTests"))
            return RandomSource { seeded.withLock { $0.next() } }
        }()

        init() async throws { fixture = try await WatchFixture(.memory) }

        /// Over a file, that ``raw(_:)`` can be used on beside the store.
        init(directory: String) async throws {
            fixture = try await WatchFixture(try SQLiteStore(directory: directory))
        }

        static func raw(_ directory: String, _ sql: String) throws {
            let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
            try queue.write { db in try db.execute(sql: sql) }
            try queue.close()
        }

        /// As after a start of the server: only the store is unchanged.
        func makeRounds(
            limits: WorkPace.Limits = .init(underWay: 64, perSecond: 1000), sealer: SecretSealer? = nil
        ) -> LeasedWork<WatchWork> {
            let clock = clock
            let time = TimeSource { clock.now }
            let sessions = LiveSessions()
            let writer = InboxWriter(
                store: fixture.store, sessions: sessions, scheduler: Scheduler { _, work in work() },
                logger: Logger(label: "test"))
            let inbox = Inbox(
                store: fixture.store, writer: writer, sessions: sessions, positions: PositionSource(epoch: 1),
                time: time, random: random)
            let home = HomeRuntime(inbox: inbox, sessions: sessions, store: fixture.store)
            return LeasedWork(
                store: fixture.store,
                user: WatchWork(
                    watches: fixture.store, notifier: ChannelNotifier(home: home, time: time), sealer: sealer ?? self.sealer,
                    random: random),
                limits: limits, time: time)
        }

        func sealed(_ channel: PushChannel) throws -> Watch.Sealed {
            Watch.Sealed(
                secret: try sealer.seal(Array(repeating: 9, count: 32), for: channel.serial.rawValue),
                token: try sealer.seal(Array("the token".utf8), for: channel.serial.rawValue))
        }

        /// - Parameter within: The most milliseconds until the first ping.
        func watch(
            _ channel: PushChannel, _ address: String, every seconds: Int = 60, within: UInt64? = nil
        ) async throws {
            let ping = Watch.Ping(address: try CallAddress(address), intervalSeconds: seconds)
            let due = PingMachine.firstDue(
                every: seconds, at: clock.now, chance: within.map { random.next() % $0 } ?? random.next())
            let request = WatchRequest(
                channel: channel.serial, ping: ping, firstDueAt: due, disconnectAddress: nil,
                sealed: try sealed(channel), callbackID: "msg_\(channel.serial.rawValue)", renewsSecret: false,
                limits: WatchLimits(perDevice: .max))
            _ = try await fixture.store.putWatch(request, at: clock.now)
        }

        /// Calls everything that is due, and answers how much that was.
        func call(_ rounds: LeasedWork<WatchWork>, _ result: CallResult) async throws -> Int {
            let due = try await rounds.due()
            for call in due { try await rounds.ended(call, result) }
            return due.count
        }

        /// As many channels, each of a device and with a backend of its own.
        func watch(count: Int, every seconds: Int) async throws {
            try await withThrowingDiscardingTaskGroup { group in
                for number in 0..<count {
                    group.addTask {
                        let (_, channel) = try await fixture.addDevice(
                            UInt64(1000 + number), app: "com.example.app")
                        try await watch(channel, "http://host\(number).example", every: seconds)
                    }
                }
            }
        }

        /// Ends a channel, so that a callback is pending.
        func end(_ channel: PushChannel, _ address: String, named name: String = "msg_x") async throws {
            let request = WatchRequest(
                channel: channel.serial, ping: nil, firstDueAt: nil, disconnectAddress: try CallAddress(address),
                sealed: try sealed(channel), callbackID: name, renewsSecret: false)
            _ = try await fixture.store.putWatch(request, at: clock.now)
            _ = try await fixture.store.closeChannel(channel.id, device: channel.device, at: clock.now)
        }
    }

    @Test(arguments: [-3600, -300 * 86_400] as [Int64])
    func `a clock that goes back delays no ping and no callback`(step: Int64) async throws {
        let world = try await World()
        let rounds = world.makeRounds()
        try await rounds.begin()
        try await world.watch(world.fixture.base.first, "http://ping.example", every: 60, within: 1)
        try await world.end(world.fixture.base.second, "http://gone.example")
        world.clock.now = world.clock.now.adding(seconds: 1)
        #expect(try await world.call(rounds, .answered(status: 500)) == 2)
        world.clock.now = world.clock.now.adding(seconds: step)
        #expect(try await world.call(rounds, .answered(status: 500)) == 0)
        // The longest of both waits, with their random part.
        world.clock.now = world.clock.now.adding(seconds: 75)
        #expect(try await world.call(rounds, .answered(status: 500)) == 2)
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
            let call = try #require(try await rounds.due().first)
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
            let call = try #require(try await rounds.due().first)
            ids.insert(call.id)
            try await rounds.ended(call, .answered(status: 200))
        }
        #expect(ids.count == 3)

        let second = world.fixture.base.second
        let request = WatchRequest(
            channel: second.serial, ping: nil, firstDueAt: nil, disconnectAddress: try CallAddress("http://b.example"),
            sealed: try world.sealed(second), callbackID: "msg_same", renewsSecret: false)
        _ = try await world.fixture.store.putWatch(request, at: world.clock.now)
        _ = try await world.fixture.store.deleteDevice(second.device, at: world.clock.now)
        for result in [CallResult.answered(status: 500), .failed(.noConnection, detail: ""), .answered(status: 200)] {
            let call = try #require(try await rounds.due().first)
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
        #expect(try await rounds.due().isEmpty)
    }

    // MARK: Fairness

    /// The case of an issue: all work of one device, 900 addresses that accept and never answer.
    @Test func `nine hundred addresses that hang, all of one device, keep nobody's pings and callbacks away`() async throws {
        let world = try await World()
        for number in 0..<900 {
            let channel = try await StoreFixture.open(
                UInt64(100 + number), of: world.fixture.base.device, in: world.fixture.store, limit: .max)
            try await world.watch(channel, "http://hangs\(number).example", every: 15, within: 1000)
        }
        let (_, pinged) = try await world.fixture.addDevice(2, app: "com.example.app")
        try await world.watch(pinged, "http://answers.example", every: 15)
        let (_, ended) = try await world.fixture.addDevice(3, app: "com.example.app")
        let rounds = world.makeRounds()
        var underWay: [(call: LeasedWork<WatchWork>.Begun, until: Timestamp)] = []
        var pings: [Timestamp] = []
        var callbackAt: Timestamp?
        let start = world.clock.now
        for tenth in 0..<1200 {
            if tenth == 600 { try await world.end(ended, "http://gone.example") }
            for call in try await rounds.due() {
                let hangs = call.address.peer.hasPrefix("hangs")
                underWay.append((call, world.clock.now.adding(milliseconds: hangs ? 10_000 : 50)))
                if call.address.peer == "answers.example:80" { pings.append(world.clock.now) }
                if call.address.peer == "gone.example:80" { callbackAt = world.clock.now }
            }
            #expect(underWay.count(where: { $0.call.address.peer.hasPrefix("hangs") }) <= 4)
            world.clock.now = world.clock.now.adding(milliseconds: 100)
            for (call, until) in underWay where until <= world.clock.now {
                let hangs = call.address.peer.hasPrefix("hangs")
                try await rounds.ended(call, hangs ? .failed(.noAnswerInTime, detail: "") : .answered(status: 204))
            }
            underWay.removeAll { $0.until <= world.clock.now }
        }
        // Two minutes at 15 seconds, plus or minus a tenth, the first anywhere in its interval.
        #expect((7...9).contains(pings.count))
        let gaps = zip([start] + pings, pings).map { $1.milliseconds - $0.milliseconds }
        #expect(gaps.allSatisfy { $0 <= 16_700 }, "\(gaps)")
        #expect(callbackAt == start.adding(seconds: 60))
    }

    /// Three hundred addresses of one device are due, and last of all one of another.
    private func makeBusy(_ world: World) async throws -> PushChannel {
        for number in 0..<300 {
            let channel = try await StoreFixture.open(
                UInt64(100 + number), of: world.fixture.base.device, in: world.fixture.store, limit: .max)
            try await world.watch(channel, "http://crowd\(number).example", every: 15, within: 1000)
        }
        world.clock.now = world.clock.now.adding(seconds: 1)
        let (_, other) = try await world.fixture.addDevice(2, app: "com.example.app")
        try await world.watch(other, "http://other.example", every: 15, within: 1)
        return other
    }

    @Test func `one round skips the devices that have their quota`() async throws {
        let world = try await World()
        _ = try await makeBusy(world)
        let peers = try await world.makeRounds().due().map(\.address.peer)
        #expect(peers.count(where: { $0.hasPrefix("crowd") }) == 2, "a device on trial has half of its quota")
        #expect(peers.contains("other.example:80"))
    }

    @Test func `calls that a round has leased are made, even if the store fails during the round`() async throws {
        let directory = try TemporaryDirectory.make()
        let world = try await World(directory: directory)
        let other = try await makeBusy(world)
        try World.raw(
            directory,
            """
            CREATE TRIGGER fault BEFORE UPDATE ON leased_work WHEN old.device = \(other.device.rawValue)
                BEGIN SELECT RAISE(ABORT, 'a fault'); END
            """)
        let rounds = world.makeRounds()
        let calls = try await rounds.due()
        #expect(calls.count == 2)
        #expect(rounds.underWay == 2)
        for call in calls { try await rounds.ended(call, .answered(status: 200)) }
        try World.raw(directory, "DROP TRIGGER fault")
        #expect(try await rounds.due().contains { $0.address.peer == "other.example:80" })
        try world.fixture.sqlite.close()
    }

    @Test func `pings and callbacks of one peer take turns`() async throws {
        let world = try await World()
        try await world.watch(world.fixture.base.first, "http://one.example/ping", every: 15)
        for number in 0..<30 {
            let channel = try await StoreFixture.open(
                UInt64(100 + number), of: world.fixture.base.device, in: world.fixture.store, limit: .max)
            try await world.end(channel, "http://one.example/gone", named: "msg_\(number)")
        }
        world.clock.now = world.clock.now.adding(seconds: 16)
        let rounds = world.makeRounds()
        var order: [BackendCall.Content] = []
        for _ in 0..<3 {
            let calls = try await rounds.due()
            #expect(calls.count == 1, "one at a time goes to one host and port")
            #expect(try await rounds.due().isEmpty)
            let call = try #require(calls.first)
            order.append(call.content)
            world.clock.now = world.clock.now.adding(milliseconds: 50)
            try await rounds.ended(call, .answered(status: 200))
        }
        #expect(order.count(where: { $0 == .ping }) == 1)
    }

    @Test func `a peer that keeps hanging is called less often, and as before once it answers`() async throws {
        let world = try await World()
        for number in 0..<40 {
            let (_, channel) = try await world.fixture.addDevice(UInt64(100 + number), app: "com.example.app")
            try await world.watch(channel, "http://one.example/\(number)", every: 15)
        }
        world.clock.now = world.clock.now.adding(seconds: 15)
        let rounds = world.makeRounds()
        var begun: [Int64] = []
        let start = world.clock.now
        while world.clock.now < start.adding(seconds: 300) {
            for call in try await rounds.due() {
                begun.append(world.clock.now.seconds - start.seconds)
                world.clock.now = world.clock.now.adding(seconds: 10)
                try await rounds.ended(call, .failed(.noAnswerInTime, detail: ""))
            }
            world.clock.now = world.clock.now.adding(seconds: 1)
        }
        #expect(begun == [0, 11, 22, 52, 102, 172, 242], "\(begun)")
        var answered = 0
        for _ in 0..<200 {
            for call in try await rounds.due() {
                answered += 1
                try await rounds.ended(call, .answered(status: 200))
            }
            world.clock.now = world.clock.now.adding(seconds: 1)
        }
        #expect(answered > 100)
    }

    // MARK: Faults of calls, reads and writes

    @Test func `a watch whose secret cannot be opened any more is reported as a lost token, once, and not called`()
        async throws
    {
        let world = try await World()
        try await world.watch(world.fixture.base.first, "http://lost.example", every: 15)
        let other = SecretSealer(
            keys: [TokenKey(id: 2, bytes: Array(repeating: 4, count: 32))], for: .watch, random: world.random)
        let rounds = world.makeRounds(sealer: other)
        for _ in 0..<3 {
            world.clock.now = world.clock.now.adding(seconds: 20)
            #expect(try await rounds.due().isEmpty)
        }
        #expect(rounds.underWay == 0)
        let notified = try await world.fixture.base.waiting(at: world.clock.now)
        #expect(notified.map(\.kind) == [.pingFailed(.tokenLost)])
        let watch = try #require(try await world.fixture.store.watch(of: world.fixture.base.first.serial))
        #expect(watch.lastPing?.failure == .tokenLost)
        #expect(watch.lastPing?.detail?.contains("register the watch again") == true)
        #expect(try #require(watch.dueAt) > world.clock.now.adding(seconds: 3000))
        // Reported once, however often it is checked.
        world.clock.now = world.clock.now.adding(seconds: 4000)
        #expect(try await rounds.due().isEmpty)
        #expect(try await world.fixture.base.waiting(at: world.clock.now).map(\.id) == notified.map(\.id))
    }

    @Test func `a callback whose secret cannot be opened any more is dropped`() async throws {
        let world = try await World()
        try await world.end(world.fixture.base.first, "http://lost.example")
        let other = SecretSealer(
            keys: [TokenKey(id: 2, bytes: Array(repeating: 4, count: 32))], for: .watch, random: world.random)
        #expect(try await world.makeRounds(sealer: other).due().isEmpty)
        world.clock.now = world.clock.now.adding(seconds: 86_400)
        #expect(try await world.fixture.due(at: world.clock.now).isEmpty, "it does not wait any more")
    }

    @Test func `when one result cannot be written, the other calls of the round are made`() async throws {
        let directory = try TemporaryDirectory.make()
        let world = try await World(directory: directory)
        try await world.end(world.fixture.base.first, "http://lost.example")
        try await world.watch(world.fixture.base.second, "http://well.example", every: 15)
        // The callback's secret is invalid, and its removal cannot be written.
        try World.raw(
            directory,
            """
            UPDATE disconnect_callback SET secret = x'00';
            CREATE TRIGGER fault BEFORE DELETE ON disconnect_callback BEGIN SELECT RAISE(ABORT, 'a fault'); END;
            """)
        world.clock.now = world.clock.now.adding(seconds: 16)
        let rounds = world.makeRounds()
        let calls = try await rounds.due()
        #expect(calls.map(\.address.peer) == ["well.example:80"])
        #expect(rounds.underWay == 1)
        try await rounds.ended(try #require(calls.first), .answered(status: 200))
        // The calls of other work continue.
        for _ in 0..<3 {
            world.clock.now = world.clock.now.adding(seconds: 20)
            let call = try #require(try await rounds.due().first)
            #expect(call.address.peer == "well.example:80")
            try await rounds.ended(call, .answered(status: 200))
        }
        try World.raw(directory, "DROP TRIGGER fault")
        _ = try await rounds.due()
        #expect(try await world.fixture.due(at: world.clock.now.adding(seconds: 3600)).map(\.kind) == [.ping])
        try world.fixture.sqlite.close()
    }

    @Test func `a call that was answered is not made again because the answer could not be written`() async throws {
        let directory = try TemporaryDirectory.make()
        let world = try await World(directory: directory)
        try await world.end(world.fixture.base.first, "http://one.example")
        let rounds = world.makeRounds()
        let call = try #require(try await rounds.due().first)
        try World.raw(
            directory, "CREATE TRIGGER fault BEFORE DELETE ON disconnect_callback BEGIN SELECT RAISE(ABORT, 'a fault'); END")
        await #expect(throws: StoreFault.self) { try await rounds.ended(call, .answered(status: 200)) }
        #expect(rounds.underWay == 0)
        // Its lease has ended meanwhile; but it is not called before its result is written.
        world.clock.now = world.clock.now.adding(seconds: 3600)
        for _ in 0..<3 { #expect(try await rounds.due().isEmpty) }
        #expect(rounds.underWay == 0)
        try World.raw(directory, "DROP TRIGGER fault")
        #expect(try await rounds.due().isEmpty)
        #expect(try await world.fixture.due(at: world.clock.now.adding(seconds: 3600)).isEmpty)
        try world.fixture.sqlite.close()
    }

    @Test func `a call whose result can never be written is repeated after its lease, once the store writes other rows`()
        async throws
    {
        let directory = try TemporaryDirectory.make()
        let world = try await World(directory: directory)
        try await world.watch(world.fixture.base.first, "http://bad.example", every: 15, within: 1)
        try await world.watch(world.fixture.base.second, "http://well.example", every: 15, within: 1)
        try World.raw(
            directory,
            """
            CREATE TRIGGER fault BEFORE UPDATE ON watch WHEN old.ping_address LIKE '%bad%'
                BEGIN SELECT RAISE(ABORT, 'a fault'); END
            """)
        let rounds = world.makeRounds()
        var called: [Int: Set<String>] = [:]
        let start = world.clock.now
        for second in 0..<140 {
            world.clock.now = start.adding(seconds: Int64(second) + 1)
            for call in try await rounds.due() {
                called[second / 70, default: []].insert(call.address.peer)
                try? await rounds.ended(call, .answered(status: 200))
            }
        }
        #expect(called == [0: ["bad.example:80", "well.example:80"], 1: ["bad.example:80", "well.example:80"]])
        try world.fixture.sqlite.close()
    }

    @Test func `an unreadable row delays no other`() async throws {
        let directory = try TemporaryDirectory.make()
        let world = try await World(directory: directory)
        try await world.watch(world.fixture.base.first, "http://first.example", every: 15)
        try await world.watch(world.fixture.base.second, "http://second.example", every: 15)
        let third = try await StoreFixture.open(3, of: world.fixture.base.device, in: world.fixture.store)
        try await world.end(third, "http://third.example")
        try World.raw(
            directory,
            """
            UPDATE watch SET ping_address = 'nothing' WHERE ping_address LIKE '%first%';
            UPDATE disconnect_callback SET reason = 'nothing';
            """)
        let rounds = world.makeRounds()
        var called: [String] = []
        for _ in 0..<10 {
            world.clock.now = world.clock.now.adding(seconds: 20)
            for call in try await rounds.due() {
                called.append(call.address.peer)
                try await rounds.ended(call, .answered(status: 200))
            }
            #expect(rounds.underWay == 0)
        }
        #expect(Set(called) == ["second.example:80"])
        #expect(called.count >= 9)
        // They are checked again after an hour, not at each round.
        #expect(!(try await world.fixture.due(at: world.clock.now).contains { $0.peer != "second.example:80" }))
        let later = try await world.fixture.due(at: world.clock.now.adding(seconds: 3600)).map(\.peer)
        #expect(later.contains("first.example:80"))
        #expect(later.contains("third.example:80"))
        try world.fixture.sqlite.close()
    }

    @Test func `a lease outlasts a call, and ends`() async throws {
        let world = try await World()
        try await world.watch(world.fixture.base.first, "http://one.example", every: 15)
        world.clock.now = world.clock.now.adding(seconds: 16)
        #expect(try await world.makeRounds().due().count == 1)
        // Another start of the server, which knows nothing of the call.
        world.clock.now = world.clock.now.adding(milliseconds: WorkLease.seconds * 1000 - 1)
        #expect(try await world.makeRounds().due().isEmpty)
        world.clock.now = world.clock.now.adding(milliseconds: 1)
        #expect(try await world.makeRounds().due().count == 1)
    }

    // MARK: The clock

    @Test(arguments: [false, true])
    func `after a clock that went forward and back, pings are made at their times`(restarts: Bool) async throws {
        let world = try await World()
        try await world.watch(world.fixture.base.first, "http://one.example", every: 15)
        var rounds = world.makeRounds()
        let start = world.clock.now
        world.clock.now = start.adding(seconds: 86_400)
        let call = try #require(try await rounds.due().first)
        try await rounds.ended(call, .answered(status: 200))
        world.clock.now = start.adding(seconds: 20)
        if restarts {
            rounds = world.makeRounds()
            try await rounds.begin()
        } else {
            #expect(try await rounds.due().isEmpty)
        }
        var pings: [Int64] = []
        for _ in 0..<60 {
            world.clock.now = world.clock.now.adding(seconds: 1)
            for call in try await rounds.due() {
                pings.append(world.clock.now.seconds - start.seconds)
                try await rounds.ended(call, .answered(status: 200))
            }
        }
        #expect((3...4).contains(pings.count), "\(pings)")
        #expect(try #require(pings.first) <= 37)
    }

    // MARK: Numbers

    /// Each watch has a backend of its own, so that nothing but the schedule spreads the calls.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["CARILLON_SANITIZED"] == nil, "it is about numbers, not threads"))
    func `ten thousand watches make no burst, at first, later, or after the server was away`() async throws {
        let world = try await World()
        let watches = 10_000
        let interval = 60
        try await world.watch(count: watches, every: interval)
        let natural = watches / interval
        let first = try await run(world, seconds: 92, limits: .init(underWay: 64, perSecond: 500))
        #expect(first.perSecond.max() ?? 0 <= natural * 2, "calls per second: \(first.perSecond)")
        #expect(first.pinged.count == watches)
        #expect(first.perSecond.reduce(0, +) >= watches * 3 / 2)

        world.clock.now = world.clock.now.adding(seconds: 7200)
        let second = try await run(world, seconds: 62, limits: .init(underWay: 64, perSecond: 500))
        #expect(second.perSecond.max() ?? 0 <= natural * 2, "calls per second: \(second.perSecond)")
        #expect(second.pinged.count == watches, "each was pinged within one interval of the start")
    }

    @Test func `without spreading, the pace alone still limits the calls`() async throws {
        let world = try await World()
        try await world.watch(count: 500, every: 86_400)
        world.clock.now = world.clock.now.adding(seconds: 86_400)
        let run = try await run(
            world, seconds: 15, limits: .init(underWay: 64, perSecond: 50), begins: false)
        #expect(run.perSecond.max() ?? 0 <= 60)
        #expect(run.pinged.count == 500)
    }

    private struct Run {
        var perSecond: [Int] = []
        var pinged: Set<String> = []
    }

    /// Lets a server's time pass in steps of a tenth of a second; every call takes one step.
    private func run(
        _ world: World, seconds: Int, limits: WorkPace.Limits, begins: Bool = true
    ) async throws -> Run {
        let rounds = world.makeRounds(limits: limits)
        if begins { try await rounds.begin() }
        var result = Run()
        for _ in 0..<seconds {
            var count = 0
            for _ in 0..<10 {
                let calls = try await rounds.due()
                count += calls.count
                world.clock.now = world.clock.now.adding(milliseconds: 100)
                try await withThrowingDiscardingTaskGroup { group in
                    for call in calls {
                        group.addTask { try await rounds.ended(call, .answered(status: 200)) }
                    }
                }
                for call in calls { result.pinged.insert(call.address.peer) }
            }
            result.perSecond.append(count)
        }
        return result
    }
}
