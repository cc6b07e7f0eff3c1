import CarillonAPNsSimulator
import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// The connections of push credentials that are no longer used.
@Suite(.timeLimit(.minutes(5)))
struct ReplacedGatewayTests {
    enum Way: CaseIterable {
        case replaced, removed, appDeleted
    }

    @Test(arguments: Way.allCases) func `the replaced gateways are closed`(way: Way) async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let device = try await world.device()
            let id = try await world.send(to: device)
            try await eventually { try await world.standings(id, of: device).contains(.state(.handed)) }
            let used = try #require(world.simulator.connections.first { $0.accepted > 0 })
            #expect(used.closedAt == nil)
            switch way {
            case .replaced: try await world.setCredentials()
            case .removed: try await world.domain.gateways.remove(of: world.app, for: .production)
            case .appDeleted: await world.domain.gateways.forget(device.app)
            }
            try await eventually {
                world.simulator.connections.contains { $0.number == used.number && $0.closedAt != nil }
            }
        }
    }
}
