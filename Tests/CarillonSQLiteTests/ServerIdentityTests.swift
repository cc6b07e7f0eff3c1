import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ServerIdentityTests {
    private static let first = ServerID(Bytes16(high: 1, low: 2))
    private static let second = ServerID(Bytes16(high: 3, low: 4))

    @Test func `a server's id is made once, and stays with its store`() async throws {
        let directory = try TemporaryDirectory.make()
        for made in [Self.first, Self.second] {
            let store = try SQLiteStore(directory: directory)
            #expect(try await store.serverID { made } == Self.first)
            #expect(try await store.serverID { Self.second } == Self.first)
            try store.close()
        }
    }

    @Test func `each start has an epoch of its own, later than every place that is stored`() async throws {
        let directory = try TemporaryDirectory.make()
        var last: Int64 = 0
        var fixture: StoreFixture?
        for round in 0..<4 {
            let store = try SQLiteStore(directory: directory)
            let epoch = try await store.claimEpoch()
            #expect(epoch > last)
            last = epoch
            let open: StoreFixture
            if let fixture { open = fixture.again(store) } else { open = try await StoreFixture(store) }
            fixture = open
            // One that went on in epochs after its own.
            let used = epoch + Int64(round) * 3
            let position = PositionSource(epoch: used).next(for: open.device.serial)
            #expect(try await open.append(open.envelope(position)) == .stored(replaced: nil))
            last = used
            try store.close()
        }
    }

    @Test func `no secret of a registration is in the store`() async throws {
        let directory = try TemporaryDirectory.make()
        let store = try SQLiteStore(directory: directory)
        let app = try StoreFixture.appID
        _ = try await store.createApp(app, at: StoreFixture.start)
        let secret = String(repeating: "s3cr3t-", count: 6)
        let registrar = DeviceRegistrar(
            devices: store, sessions: LiveSessions(), directory: ChannelDirectory(store: store),
            allowances: Allowances(settings: .init(), ticks: TickSource { 0 }),
            time: TimeSource { StoreFixture.start }, random: RandomSource { .random(in: .min ... .max) })
        _ = try await registrar.register(app: app, registration: secret)
        try store.close()
        for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
            let data = try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name))
            #expect(data.range(of: Data(secret.utf8)) == nil, "\(name)")
        }
    }
}
