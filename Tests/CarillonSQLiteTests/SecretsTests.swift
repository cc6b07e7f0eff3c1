import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import StoreConformance
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct SecretsTests {
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
