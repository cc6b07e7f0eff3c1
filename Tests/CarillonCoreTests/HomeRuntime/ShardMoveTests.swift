import CarillonBasics
import CarillonWire
import Synchronization
import TestStores
import Testing

@testable import CarillonCore

/// Moves of a shard between two homes over one store.
@Suite(.timeLimit(.minutes(5)))
struct ShardMoveTests {
    private let world: GatedHomes
    private var device: DeviceSerial { world.device.serial }

    init() async throws { world = try await GatedHomes() }

    /// Whether a home has the device, and accepts messages for it.
    private func accepts(_ place: Int) async -> Bool {
        let home = world.runtimes[place]
        let delivered = await world.deliver(at: home).result
        return home.has(device) && world.homes.localHome(of: device) === home && delivered.isStored
    }

    @Test func `the map of shards and the table of the process have the new home`() async throws {
        let before = try await world.store.shardMap()
        let taken = Mutex<[Shard]>([])
        let result = try await world.move(took: { shard in taken.withLock { $0.append(shard) } })
        #expect(result == .moved)
        let map = try await world.store.shardMap()
        let place = try #require(map.places[world.shard])
        #expect(place.node == GatedHomes.node(1) && map.version == before.version + 1)
        #expect(place.epoch == world.second.epoch && place.epoch > world.first.epoch)
        #expect(map.places.filter { before.places[$0.key] != $0.value }.map(\.key) == [world.shard])
        #expect(taken.withLock { $0 } == [world.shard])
        let accept = [await accepts(0), await accepts(1)]
        #expect(accept == [false, true])
        #expect(world.first.shards.shards.count == 511 && world.second.shards.shards.count == 513)
    }

    @Test func `messages that wait are read at the new home`() async throws {
        let ids = [await world.deliver(at: world.first).id, await world.deliver(at: world.first).id]
        #expect(try await world.move() == .moved)
        let session = MovingSession()
        let arrived = try await world.arrive(as: session)
        #expect(arrived.device?.page.envelopes.map(\.id) == ids)
        #expect(world.second.isConnected(device))
        #expect(try await world.second.cancel(ids[0], of: device))
        #expect(try await world.waiting() == [ids[1]])
    }

    @Test(arguments: [0, 1])
    func `positions ascend after a move, also if a home used a later epoch`(early: Int) async throws {
        world.runtimes[early].raise(to: 50)
        var positions: [Int64] = []
        var place = 0
        for _ in 0..<4 {
            positions.append(await world.deliver(at: world.runtimes[place]).id.position)
            #expect(try await world.move(from: place) == .moved)
            place = 1 - place
        }
        positions.append(await world.deliver(at: world.runtimes[place]).id.position)
        #expect(positions == positions.sorted() && Set(positions).count == 5)
        #expect(try await world.waiting().map(\.position) == positions)
        let epochs = positions.map(PositionSource.epoch(of:))
        #expect(Set(epochs).count == 5)
        #expect(try await world.store.shardMap().places[world.shard]?.epoch == epochs[4])
    }

    @Test func `a position that was not stored is earlier than those after the move`() async throws {
        world.first.raise(to: 50)
        let unstored = world.first.inbox.newID(for: device)
        #expect(try await world.move() == .moved)
        #expect(await world.deliver(at: world.second).id.position > unstored.position)
    }

    @Test func `a session is removed at the former home after the move`() async throws {
        let session = MovingSession()
        _ = try await world.arrive(as: session)
        #expect(try await world.move() == .moved)
        #expect(session.events == [.moving, .gone])
        #expect(!world.first.isConnected(device))
        // It is expected there.
        #expect(world.second.isConnected(device) && world.second.population == (0, 0))
    }

    @Test(arguments: [true, false])
    func `a call that waited for the shard finds a device connected whose session has not arrived`(
        hasSession: Bool
    ) async throws {
        if hasSession { _ = try await world.arrive(as: MovingSession()) }
        let gate = try #require(world.first.gate)
        let found = Mutex<[Bool]>([])
        let result = try await world.move(release: { [world] _ in
            gate.whenDecided(world.shard) {
                let (home, device) = (world.second, world.device.serial)
                let isAwaited = home.sessions.appending(to: device) { _, isAwaited in (isAwaited, nil) }
                found.withLock { $0 += [home.isConnected(device), isAwaited] }
            }
            return true
        })
        #expect(result == .moved)
        #expect(found.withLock { $0 } == [hasSession, hasSession])
        #expect(world.second.population == (0, 0))
    }

    // MARK: Moves that are not done

    /// Expects that the shard is still at the first home, and that a further move is done.
    private func expectStay(_ session: MovingSession, _ events: [MovingSession.Event]) async throws {
        #expect(session.events == events)
        #expect(world.first.isConnected(device))
        let accept = [await accepts(1), await accepts(0)]
        #expect(accept == [false, true])
        #expect(session.events.last == .storedMore)
        #expect(try await world.store.shardMap().places[world.shard]?.node == GatedHomes.node(0))
        #expect(try await world.move() == .moved)
        #expect(Array(session.events.suffix(2)) == [.moving, .gone])
    }

    @Test func `a shard whose new owner cannot be written stays`() async throws {
        let session = MovingSession()
        _ = try await world.arrive(as: session)
        stores.refuseChanges(of: world.store, with: StoreFault(.full, "no"))
        await #expect(throws: StoreFault.self) { try await world.move() }
        stores.refuseChanges(of: world.store, with: nil)
        try await expectStay(session, [.moving, .stays])
    }

    @Test func `a shard with a change that cannot be written stays`() async throws {
        let session = MovingSession()
        let id = await world.deliver(at: world.first).id
        _ = try await world.arrive(as: session)
        stores.refuseChanges(of: world.store, with: StoreFault(.full, "no"))
        world.first.finish(EnvelopeAnswer(id, .acknowledged), of: device)
        #expect(try await world.move() == .busy)
        stores.refuseChanges(of: world.store, with: nil)
        await world.first.writeUnwritten()
        #expect(try await world.outcome(of: id) == .acknowledged)
        try await expectStay(session, [])
    }

    @Test func `a shard with a call under way stays`() async throws {
        let session = MovingSession()
        _ = try await world.arrive(as: session)
        let gate = try #require(world.first.gate)
        try await gate.enter(world.shard)
        #expect(try await world.move() == .busy)
        gate.leave(world.shard)
        try await expectStay(session, [])
    }

    @Test func `a shard whose features have work under way stays`() async throws {
        let session = MovingSession()
        _ = try await world.arrive(as: session)
        #expect(try await world.move(release: { _ in false }) == .busy)
        try await expectStay(session, [])
    }

    @Test func `a shard whose features take too long stays, and is moved later`() async throws {
        let (session, release) = (MovingSession(), Signal())
        _ = try await world.arrive(as: session)
        let result = try await world.move(release: { _ in
            await release.wait()
            return true
        })
        #expect(result == .busy)
        try await expectStay(session, [])
        release.send()
    }

    @Test func `a shard with a session that does not answer stays`() async throws {
        let (first, silent) = (MovingSession(), MovingSession(answersMoves: false))
        _ = try await world.arrive(as: silent)
        #expect(try await world.move() == .busy)
        #expect(silent.events == [.moving, .stays])
        _ = try await world.arrive(as: first)
        world.first.leave(silent, of: device)
        try await expectStay(first, [])
    }

    // MARK: Calls during moves

    @Test func `an answer during a move is written by the new home`() async throws {
        let id = await world.deliver(at: world.first).id
        _ = try await world.arrive(as: MovingSession())
        let result = try await world.move(release: { [world] _ in
            world.first.finish(EnvelopeAnswer(id, .acknowledged), of: world.device.serial)
            return true
        })
        #expect(result == .moved)
        await world.second.flush()
        #expect(try await world.outcome(of: id) == .acknowledged)
    }

    @Test func `a device that connects during a move is connected at the new home`() async throws {
        let session = MovingSession()
        let arrival = Mutex<Task<Arrived, any Error>?>(nil)
        let result = try await world.move(release: { [world] _ in
            let task = Task<Arrived, any Error> { try await world.arrive(as: session) }
            arrival.withLock { $0 = task }
            return true
        })
        #expect(result == .moved)
        let arrived = try await arrival.withLock { $0 }?.value
        #expect(arrived?.device != nil)
        #expect(world.second.isConnected(device) && session.events.isEmpty)
    }

    @Test func `messages that are sent while a shard moves back and forth are stored once, in their order`() async throws {
        let world = world
        let sender = Task { () -> [MessageID] in
            var sent: [MessageID] = []
            while sent.count < 300 {
                let isFirst = world.homes.localHome(of: world.device.serial) === world.first
                let (id, result) = await world.deliver(at: isFirst ? world.first : world.second)
                if result == .stored(replaced: nil) { sent.append(id) } else { await Task.yield() }
            }
            return sent
        }
        var (place, moves) = (0, 0)
        while moves < 20 {
            guard try await world.move(from: place) == .moved else { continue }
            place = 1 - place
            moves += 1
        }
        let sent = await sender.value
        #expect(sent.map(\.position) == sent.map(\.position).sorted())
        #expect(try await world.waiting() == sent)
        let version = try await world.store.shardMap().version
        #expect(version == 22)
    }
}
