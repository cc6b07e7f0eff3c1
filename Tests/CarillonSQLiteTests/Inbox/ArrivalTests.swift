import CarillonCore
import CarillonSQLite
import Dispatch
import StoreConformance
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ArrivalTests {
    @Test func `a device that is deleted while it is let in is told that it is gone`() async throws {
        let fixture = try await StoreFixture(.file)
        let (store, device) = (fixture.sqlite, fixture.device)
        _ = try await fixture.append(fixture.envelope(1))
        let load = DeliveryMachine.Load(after: 0, limit: 9, bytes: 10_000)
        let arrival = try await store.arrival(of: .id(device.id), load, at: StoreFixture.start) { _ in
            let deleted = DispatchSemaphore(value: 0)
            Task {
                _ = try await store.deleteDevice(device.serial, at: StoreFixture.start)
                deleted.signal()
            }
            deleted.wait()
            return .accept
        }
        #expect(arrival?.inbox == .gone)
    }
}
