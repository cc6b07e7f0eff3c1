import CarillonCore
import CarillonWire
import Testing

private let start = PushFixture.start

extension StoreCase {
    static let gateways: [StoreCase] = [
        StoreCase("an app's credentials are kept for each environment, the last that were set", credentialsAreKept),
        StoreCase("credentials go with their app", credentialsGoWithTheirApp),
    ]
}

private func credential(_ base: StoreFixture, _ environment: PushEnvironment, _ byte: UInt8) throws -> GatewayCredential {
    GatewayCredential(
        app: try StoreFixture.appID, lane: PushLane(app: base.device.app, environment: environment), sealed: [byte],
        summary: "{\"kind\":\"\(byte)\"}", setAt: start.after(Int64(byte)))
}

private func credentialsAreKept(_ stores: any StoreMaker) async throws {
    let base = try await StoreFixture(stores)
    let (app, store) = (try StoreFixture.appID, base.store)
    #expect(try await store.credentials(of: app).isEmpty)
    #expect(try await store.putCredential(credential(base, .production, 1)))
    #expect(try await store.putCredential(credential(base, .sandbox, 2)))
    #expect(try await store.putCredential(credential(base, .production, 3)))
    let all = try await store.credentials(of: app)
    #expect(all.map(\.lane.environment) == [.production, .sandbox])
    #expect(all.map(\.sealed) == [[3], [2]])
    #expect(all[0].summary == "{\"kind\":\"3\"}" && all[0].setAt == start.after(3) && all[0].app == app)
    #expect(try await store.credentials(of: nil) == all)
    let none = try #require(AppID("com.example.none"))
    #expect(try await store.credentials(of: none).isEmpty)
    #expect(try await store.removeCredential(of: app, for: .production) == all[0].lane)
    #expect(try await store.removeCredential(of: app, for: .production) == nil)
    #expect(try await store.credentials(of: app).map(\.lane.environment) == [.sandbox])
}

private func credentialsGoWithTheirApp(_ stores: any StoreMaker) async throws {
    let base = try await StoreFixture(stores)
    let (app, store) = (try StoreFixture.appID, base.store)
    #expect(try await store.putCredential(credential(base, .production, 1)))
    _ = try await store.deleteApp(app, at: start)
    #expect(try await store.credentials(of: nil).isEmpty)
    #expect(try await !store.putCredential(credential(base, .production, 1)))
    #expect(try await store.removeCredential(of: app, for: .production) == nil)
    _ = try await store.createApp(app, at: start)
    #expect(try await store.credentials(of: app).isEmpty)
}
