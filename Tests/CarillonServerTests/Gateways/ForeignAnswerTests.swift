import CarillonAPNsSimulator
import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// A push with an answer of another program in place of the service.
@Suite(.timeLimit(.minutes(5)))
struct ForeignAnswerTests {
    private func handed(_ id: MessageID, _ device: Device, _ world: GatewayWorld) async throws {
        try await eventually { try await world.standings(id, of: device).contains(.state(.handed)) }
    }

    @Test(arguments: [
        APNsSimulator.Fault.answer(status: 410, .html), .answer(status: 410, .empty), .answer(status: 400, .html),
        .answer(status: 401, .html), .answer(status: 403, .html), .answer(status: 404, .html), .answer(status: 408, .html),
        .answer(status: 413, .html), .answer(status: 421, .html), .answer(status: 425, .text(#"{"error":"early"}"#)),
        .answer(status: 200, .html), .answer(status: 204, .html),
    ])
    func `an answer of another program neither suspends nor parks, and the push is sent under its name`(
        _ fault: APNsSimulator.Fault
    ) async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            try world.simulator.add(APNsSimulator.FaultRule(fault, times: 8))
            let device = try await world.device()
            let id = try await world.send(to: device)
            for attempt in 1...8 {
                try await eventually { world.simulator.totals.faults == attempt }
                try await eventually { try await world.standings(id, of: device) == [.state(.scheduled)] }
                world.advance(seconds: 1200)
            }
            try await handed(id, device, world)
            #expect(try await world.status(of: device) == .registered)
            #expect(Set(world.simulator.requests.compactMap { $0.headers["apns-id"] }).count == 1)
            #expect(world.domain.gateways.pausedQueues.isEmpty)
        }
    }

    @Test func `ten consecutive foreign answers pause the push queue, which shows the answer`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            try world.simulator.add(APNsSimulator.FaultRule(.answer(status: 404, .html)))
            for number in 0..<10 { _ = try await world.send(to: try await world.device("aa\(1000 + number)")) }
            try await eventually { world.domain.gateways.pausedQueues.first?.reason.hasPrefix("404: <") == true }
            #expect(world.simulator.totals.faults == 10)
            let device = try await world.device()
            let id = try await world.send(to: device)
            try world.simulator.setFaults([])
            try await eventually {
                world.advance(seconds: 60)
                return try await world.standings(id, of: device).contains(.state(.handed))
            }
            #expect(world.domain.gateways.pausedQueues.isEmpty)
            #expect(try await world.status(of: device) == .registered)
        }
    }

    @Test func `one push with repeated foreign answers does not delay the others`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let poisoned = try await world.device("bad0bad0")
            try world.simulator.add(
                APNsSimulator.FaultRule(.answer(status: 404, .html), pathSuffix: "bad0bad0"))
            let id = try await world.send(to: poisoned)
            for attempt in 1...12 {
                try await eventually { world.simulator.totals.faults == attempt }
                try await eventually { try await world.standings(id, of: poisoned) == [.state(.scheduled)] }
                world.advance(seconds: 1200)
            }
            #expect(world.domain.gateways.pausedQueues.isEmpty)
            let device = try await world.device()
            try await handed(try await world.send(to: device), device, world)
            #expect(try await world.standings(id, of: poisoned) == [.state(.scheduled)])
        }
    }
}
