import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// Updates of one order key, of which one ends just before its delivery to a device.
@Suite(.timeLimit(.minutes(5)))
struct UpdateOrderTests {
    enum End: CaseIterable {
        case withdrawn
        case superseded
        case expired
    }

    /// Three of a key, of which the device has the first; the second ended, and its completions were ended with it.
    private struct Scenario {
        var world: UpdateWorld
        var binding: UpdateBinding
        var first: UpdateWorld.Copy
        var second: Update
        var third: Update

        init(_ end: End) async throws {
            world = try await UpdateWorld()
            try await world.publish("definitions", "{}", #","orderKey":"k""#)
            first = try #require(try await world.poll().first)
            // The device is away: published updates are evaluated for it when the test starts it.
            world.advance(seconds: 6)
            try await world.sweep()
            #expect(world.routes.domain.updateDelivery.rememberedDevices == 0)
            let id = try await world.publish("definitions", "{}", #","orderKey":"k","ttl":60"#)
            let store = world.routes.store
            func update(_ id: String) async throws -> Update {
                let id = try #require(UpdateID(id))
                return try #require(try await store.update(id, of: AppSerial(1)))
            }
            second = try await update(id)
            switch end {
            case .withdrawn: try await world.withdraw(id)
            case .superseded: try await world.publish("definitions", "{}", #","supersedes":"\#(id)""#)
            case .expired: world.advance(seconds: 60)
            }
            try await world.sweep()
            third = try await update(try await world.publish("definitions", "{}", #","orderKey":"k""#))
            let deviceID = try #require(DeviceID(world.first.id))
            let device = try await world.routes.domain.devices.find(deviceID)
            binding = try #require(try await store.presentBinding(of: device.serial))
        }

        func behind(_ update: Update) -> Completion {
            Completion(
                key: CompletionKey(update: update.serial, binding: binding.serial, entry: 1), machine: CompletionMachine(),
                changedAt: world.now, orderKey: "k")
        }

        func evaluated(_ completions: [Completion]) async throws -> Bool {
            try await world.routes.store.evaluated(
                binding.serial, revision: binding.revision, to: AudienceCursor(third.serial, rules: binding.cursor.rules),
                isFull: false, adding: completions, at: world.now)
        }

        /// The updates that the device receives when it is done with the first.
        func rest() async throws -> [String] {
            var given: [String] = []
            for copy in try await world.poll(nil, UpdateWorld.result(first)) where copy.attempt > 0 {
                given.append(copy.update)
            }
            return given
        }
    }

    @Test(arguments: End.allCases)
    func `an update that ended just before its delivery to a device delays none of its order key`(
        end: End
    ) async throws {
        let scenario = try await Scenario(end)
        #expect(try await scenario.evaluated([scenario.behind(scenario.second), scenario.behind(scenario.third)]))
        #expect(try await scenario.world.counts(scenario.second.id.description)["waiting"] == nil)
        #expect(try await scenario.rest().contains(scenario.third.id.description))
    }

    @Test(arguments: End.allCases, [true, false])
    func `a completion that was written behind the end of its update is ended`(end: End, atStart: Bool) async throws {
        let scenario = try await Scenario(end)
        #expect(try await scenario.evaluated([scenario.behind(scenario.third)]))
        try await stores.addUnfinished(
            of: scenario.second.serial, scenario.binding.serial, entry: 1, orderKey: "k", in: scenario.world.routes.store)
        #expect(try await !scenario.rest().contains(scenario.third.id.description))
        var world = scenario.world
        if atStart {
            world = try await UpdateWorld(world, goingOnWith: world.routes.store)
        } else {
            world.advance(seconds: 3600)
        }
        try await world.sweep()
        #expect(try await world.counts(scenario.second.id.description) == ["\(end)": 1])
        #expect(try await world.poll().map(\.update).contains(scenario.third.id.description))
    }

    @Test func `unfinished completions are found slice by slice`() async throws {
        let scenario = try await Scenario(.withdrawn)
        let store = scenario.world.routes.store
        try await stores.addUnfinished(of: nil, scenario.binding.serial, entry: 9, orderKey: nil, in: store)
        var places: [UpdateSerial] = []
        var place = UpdateSerial(0)
        while let next = try await store.findUnfinishedOfEnded(in: .all, after: place, limit: 1) {
            places.append(next)
            place = next
        }
        #expect(places.count == 3)
        #expect(try await stores.staleUpdates(in: store) == [scenario.second.serial])
    }
}
