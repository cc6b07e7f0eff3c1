import CarillonCore
import CarillonSQLite
import StoreConformance
import TestStores
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ArrivalTests {
    @Test func `a device arrives even if its waiting messages cannot be read`() async throws {
        let fixture = try await StoreFixture(.file)
        _ = try await fixture.append(fixture.envelope(1))
        try await fixture.sqlite.run("UPDATE envelope SET kind = 999")
        let load = PageRequest(after: 0, limit: 9, bytes: 10_000)
        let name = DeviceName.id(fixture.device.id, credential: fixture.device.credentialHash)
        let arrival = try await fixture.store.arrival(of: name, load, at: StoreFixture.start)
        #expect(arrival == Arrival(device: fixture.device, envelopes: nil))
    }

    @Test func `a poll with a wrong credential is refused even if the waiting messages cannot be read`() async throws {
        let fixture = try await StoreFixture(.file)
        _ = try await fixture.append(fixture.envelope(1))
        try await fixture.sqlite.run("UPDATE envelope SET kind = 999")
        let wrong = DeviceName.id(fixture.device.id, credential: SecretHash(of: [9, 9]))
        #expect(try await fixture.store.poll(of: wrong, at: StoreFixture.start) == nil)
        let right = DeviceName.id(fixture.device.id, credential: fixture.device.credentialHash)
        await #expect(throws: StoreFault.self) { try await fixture.store.poll(of: right, at: StoreFixture.start) }
    }
}
