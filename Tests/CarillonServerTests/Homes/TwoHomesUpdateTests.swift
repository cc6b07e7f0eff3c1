import CarillonWire
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// Updates for devices of two homes, which one of the homes publishes and withdraws.
@Suite(.timeLimit(.minutes(5)))
struct TwoHomesUpdateTests {
    private let word = UpdateDelivery.PollReport(
        profile: "main", kinds: [UpdateKind.definitions.name], parameters: nil, results: [], receivedTo: nil,
        offersAgain: false, needsResync: false)

    private final class Flag: Sendable {
        private let state = Mutex(false)
        var isSet: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    /// A device polls, and counts as connected for the next seconds.
    @discardableResult
    private func poll(_ device: Device, in world: TwoHomes) async throws -> UpdateBinding {
        let delivery = world.domain(of: device).updateDelivery
        let binding = try await delivery.binding(of: device, profile: word.profile)
        return try await delivery.take(word, from: device, binding).binding
    }

    private func publish(
        at place: Int = 0, wakes: Bool = false, superseding superseded: UpdateID? = nil, in world: TwoHomes
    ) async throws -> Update {
        let definition = Update.Definition(
            kind: .definitions, payload: Array("{}".utf8), audience: nil, mode: .once, ttlSeconds: 3600, orderKey: nil,
            wakes: wakes, supersedes: superseded)
        return try await world.domains[place].updates.publish(definition, of: world.app.serial, by: KeyID(1)).update
    }

    private func withdraw(_ update: Update, in world: TwoHomes) async throws {
        try await world.domains[0].updates.withdraw(update.id, of: world.app.serial, by: KeyID(1))
    }

    private func isWithdrawn(_ update: Update, from connection: NotingSession) -> Bool {
        connection.withdrawals.contains(.all(of: update.origin.key))
    }

    /// Waits until as many envelopes wait for the device.
    private func wait(for count: Int, of device: Device, in world: TwoHomes) async throws {
        try await eventually { try await world.waiting(for: device).count == count }
    }

    @Test(arguments: [0, 1])
    func `an update reaches the waiting polls and the connections of both homes`(place: Int) async throws {
        let world = try await TwoHomes()
        let devices = try await world.devices()
        var connections: [NotingSession] = []
        for device in devices {
            try await poll(device, in: world)
            connections.append(world.connect(device))
            let waiting = NotingSession()
            world.domain(of: device).home.addWaiter(waiting, for: device.serial)
            connections.append(waiting)
        }
        _ = try await publish(at: place, in: world)
        for device in devices { try await wait(for: 1, of: device, in: world) }
        for connection in connections { try await eventually { connection.hasChange } }
    }

    @Test func `a home that no hint reached finds an update at the next poll`() async throws {
        let world = try await TwoHomes()
        let device = try await world.device(at: 1)
        let binding = try await poll(device, in: world)
        let delivery = world.domains[1].updateDelivery
        #expect(try await delivery.isUpToDate(word, by: device, binding))
        world.links[1].cut()
        _ = try await publish(in: world)
        #expect(try await !delivery.isUpToDate(word, by: device, binding))
        try await poll(device, in: world)
        #expect(try await world.waiting(for: device).map(\.kind.number) == [.update])
    }

    @Test func `a home that no hint reached finds each update in its sweep, once`() async throws {
        let world = try await TwoHomes()
        let device = try await world.device(at: 1)
        try await poll(device, in: world)
        _ = world.connect(device)
        let delivery = world.domains[1].updateDelivery
        world.links[1].cut()
        for count in 1...3 {
            _ = try await publish(in: world)
            #expect(try await world.waiting(for: device).count == count - 1)
            try await delivery.sweep()
            try await wait(for: count, of: device, in: world)
        }
        let looks = delivery.evaluations
        try await delivery.sweep()
        #expect(try await world.waiting(for: device).count == 3)
        #expect(delivery.evaluations == looks)
    }

    @Test func `a withdrawal is answered when the sessions of both homes are rid of the update`() async throws {
        let world = try await TwoHomes()
        let devices = try await world.devices()
        for device in devices { try await poll(device, in: world) }
        let connections = devices.map { world.connect($0) }
        let update = try await publish(in: world)
        for device in devices { try await wait(for: 1, of: device, in: world) }
        connections[1].becomeSlow()
        let answer = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await withdraw(update, in: world)
                answer.set()
            }
            try await eventually { isWithdrawn(update, from: connections[1]) }
            try await Task.sleep(for: .milliseconds(20))
            #expect(!answer.isSet)
            connections[1].catchUp()
            try await group.waitForAll()
        }
        #expect(isWithdrawn(update, from: connections[0]))
        for device in devices { #expect(try await world.waiting(for: device).isEmpty) }
    }

    @Test func `a withdrawal fails if a home does not answer, and its repetition asks the home again`() async throws {
        let world = try await TwoHomes()
        let device = try await world.device(at: 1)
        try await poll(device, in: world)
        let connection = world.connect(device)
        let update = try await publish(in: world)
        try await wait(for: 1, of: device, in: world)
        world.links[1].cut()
        await #expect(throws: StoreFault.self) { try await withdraw(update, in: world) }
        #expect(!isWithdrawn(update, from: connection))
        #expect(try await world.domains[0].updates.update(update.id, of: world.app.serial).status == .withdrawn)
        await #expect(throws: StoreFault.self) { try await withdraw(update, in: world) }
        world.links[1].mend()
        let refusal = await #expect(throws: Refusal.self) { try await withdraw(update, in: world) }
        #expect(refusal?.code == .updateFinal)
        #expect(isWithdrawn(update, from: connection))
    }

    @Test func `an update that is superseded leaves the sessions of both homes`() async throws {
        let world = try await TwoHomes()
        let devices = try await world.devices()
        for device in devices { try await poll(device, in: world) }
        let connections = devices.map { world.connect($0) }
        let update = try await publish(in: world)
        for device in devices { try await wait(for: 1, of: device, in: world) }
        let later = try await publish(superseding: update.id, in: world)
        for connection in connections { try await eventually { isWithdrawn(update, from: connection) } }
        for device in devices {
            try await eventually { try await world.waiting(for: device).map(\.origin.key) == [later.origin.key] }
        }
    }

    @Test func `a poll delivers due updates also if the shard of the device is closing`() async throws {
        let world = try await TwoHomes()
        let device = try await world.device(at: 0)
        let binding = try await poll(device, in: world)
        _ = try await publish(in: world)
        try await wait(for: 1, of: device, in: world)
        let domain = world.domains[0]
        let received = try await world.waiting(for: device).map { EnvelopeAnswer($0.id, .acknowledged) }
        try await domain.home.finish(received, device: device.serial)
        try await world.store.offerAgain(to: binding.serial, needsResync: false, at: world.now)
        let given = try await domain.runtime.whileClosing(Shard(of: device.serial)) {
            try await domain.updateDelivery.resendDue(to: binding.serial)
        }
        #expect(given == 1)
    }

    @Test func `a home restores the due updates of the other home after the clock was set back`() async throws {
        let world = try await TwoHomes()
        let device = try await world.device(at: 1)
        let binding = try await poll(device, in: world)
        _ = try await publish(in: world)
        try await wait(for: 1, of: device, in: world)
        let received = try await world.waiting(for: device).map { EnvelopeAnswer($0.id, .acknowledged) }
        try await world.domains[1].home.finish(received, device: device.serial)
        try await world.store.offerAgain(to: binding.serial, needsResync: false, at: world.now)
        world.advance(seconds: -31 * 86_400)
        #expect(try await world.store.dueCompletions(of: nil, in: .all, at: world.now, limit: 9).isEmpty)
        try await world.domains[0].updateDelivery.sweep()
        #expect(try await world.store.dueCompletions(of: nil, in: .all, at: world.now, limit: 9).count == 1)
    }

    // MARK: Waking

    /// Devices that have a push token and polled a while ago.
    private func sleepers(in world: TwoHomes) async throws -> [Device] {
        let devices = try await world.devices()
        for (device, token) in zip(devices, ["aa01", "aa02"]) {
            try await world.sayToken(token, by: device)
            try await poll(device, in: world)
        }
        world.advance(seconds: 10)
        for domain in world.domains {
            try await domain.updateDelivery.sweep()
            #expect(domain.updateDelivery.rememberedDevices == 0)
        }
        return devices
    }

    @Test func `one home wakes the sleeping devices of both, once`() async throws {
        let world = try await TwoHomes()
        let devices = try await sleepers(in: world)
        let waiting = NotingSession()
        world.domains[1].home.addWaiter(waiting, for: devices[1].serial)
        _ = try await publish(wakes: true, in: world)
        while try await world.domains[0].updateDelivery.wakeSome() {}
        for domain in world.domains { #expect(try await !domain.updateDelivery.wakeSome()) }
        for device in devices { #expect(try await world.waiting(for: device).map(\.kind.number) == [.update]) }
        #expect(try await stores.count(.wakes, in: world.store) == 2)
        #expect(waiting.hasChange)
    }

    @Test func `a device is woken later if its home does not answer, and no device is woken twice`() async throws {
        let world = try await TwoHomes()
        let devices = try await sleepers(in: world)
        _ = try await publish(wakes: true, in: world)
        world.links[1].cut()
        await #expect(throws: StoreFault.self) { try await world.domains[0].updateDelivery.wakeSome() }
        #expect(try await world.waiting(for: devices[1]).isEmpty)
        world.links[1].mend()
        while try await world.domains[0].updateDelivery.wakeSome() {}
        for device in devices { #expect(try await world.waiting(for: device).map(\.kind.number) == [.update]) }
        #expect(try await stores.count(.wakes, in: world.store) == 2)
    }

    @Test func `a device that moves while devices are woken is woken later`() async throws {
        let world = try await TwoHomes()
        let devices = try await sleepers(in: world)
        _ = try await publish(wakes: true, in: world)
        let (gate, shard) = (try #require(world.domains[1].runtime.gate), Shard(of: devices[1].serial))
        #expect(await gate.close(shard, atMost: .seconds(10)))
        gate.remove(shard)
        await #expect(throws: StoreFault.self) { try await world.domains[0].updateDelivery.wakeSome() }
        gate.take(shard)
        while try await world.domains[0].updateDelivery.wakeSome() {}
        for device in devices { #expect(try await world.waiting(for: device).map(\.kind.number) == [.update]) }
        #expect(try await stores.count(.wakes, in: world.store) == 2)
    }

    @Test func `a device that is woken does not move meanwhile`() async throws {
        let world = try await TwoHomes()
        let device = try await sleepers(in: world)[0]
        _ = try await publish(wakes: true, in: world)
        let domain = world.domains[0]
        let (gate, shard) = (try #require(domain.runtime.gate), Shard(of: device.serial))
        let binding = try await domain.updateDelivery.binding(of: device, profile: word.profile)
        let (hasBegun, mayEnd) = (Flag(), Flag())
        async let other: Void = domain.updateDelivery.turns.take(binding.serial) {
            hasBegun.set()
            try await eventually { mayEnd.isSet }
        }
        try await eventually { hasBegun.isSet }
        async let isMore = domain.updateDelivery.wakeSome()
        try await eventually { domain.updateDelivery.turns.waiters(for: binding.serial) == 1 }
        #expect(await !gate.close(shard, atMost: .milliseconds(20)))
        mayEnd.set()
        try await other
        #expect(try await isMore)
        #expect(try await world.waiting(for: device).count == 1)
    }

    @Test func `an update that one home let expire leaves the inboxes of both`() async throws {
        let world = try await TwoHomes()
        let devices = try await world.devices()
        for device in devices { try await poll(device, in: world) }
        _ = try await publish(in: world)
        for device in devices { try await wait(for: 1, of: device, in: world) }
        world.advance(seconds: 3600)
        try await world.domains[0].updateDelivery.endExpired()
        for domain in world.domains {
            try await domain.updateDelivery.sweep()
            #expect(try await domain.updateDelivery.logs.log(of: world.app.serial).live.count == 0)
        }
        #expect(try await world.store.unfinishedOfEnded(in: .all, limit: 9).isEmpty)
    }
}
