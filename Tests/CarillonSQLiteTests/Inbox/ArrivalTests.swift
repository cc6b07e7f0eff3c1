import CarillonCore
import CarillonSQLite
import StoreConformance
import TestStores
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ArrivalTests {
    @Test func `a device arrives even if what waits for it cannot be read`() async throws {
        let fixture = try await StoreFixture(.file)
        _ = try await fixture.append(fixture.envelope(1))
        try await fixture.sqlite.run("UPDATE envelope SET kind = 999")
        let load = DeliveryMachine.Load(after: 0, limit: 9, bytes: 10_000)
        let arrival = try await fixture.store.arrival(of: .id(fixture.device.id), load, at: StoreFixture.start)
        #expect(arrival == Arrival(device: fixture.device, envelopes: nil))
    }
}
