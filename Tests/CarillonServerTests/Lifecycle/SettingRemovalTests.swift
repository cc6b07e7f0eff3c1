import CarillonCore
import CarillonWire
import Logging
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Settings that an app does not need to have are removed without a fault, unless there is no such app.
@Suite(.timeLimit(.minutes(5)))
struct SettingRemovalTests {
    private static let start = Timestamp(milliseconds: 0)

    private func gateways(_ store: any Store, _ documents: DocumentReadings) -> Gateways {
        Gateways(
            apps: store, documents: AppDocuments(store: documents),
            keys: [TokenKey(id: 1, bytes: Array(repeating: 1, count: 32))], isKeyRingWrapped: true,
            settings: .init(), time: .system, random: .system,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    @Test func `an alert text of an app that is deleted meanwhile is not removed`() async throws {
        let store = try await stores.open()
        let app = try #require(AppID("com.example.app"))
        _ = try await store.createApp(app, at: Self.start)
        let gateways = gateways(store, DocumentReadings(store))
        try await gateways.setAlert(nil, of: app)
        let deleting = self.gateways(store, DocumentReadings(store) { _ = try await store.deleteApp(app, at: Self.start) })
        let refusal = await #expect(throws: Refusal.self) { try await deleting.setAlert(nil, of: app) }
        #expect(refusal?.code == .appUnknown)
    }

    @Test func `a realm of an app that is deleted meanwhile is not removed`() async throws {
        let world = try await EngineWorld(stores.open())
        let (domain, app) = (world.domain, world.device.app)
        try await domain.services.setRealm("home", of: app)
        try await domain.services.removeRealm { app }
        #expect(try await domain.services.realm(of: app) == nil)
        try await domain.services.removeRealm { app }
        let refusal = await #expect(throws: Refusal.self) {
            try await domain.services.removeRealm {
                let serial = try await domain.serial(ofApp: "com.example.app")
                try await domain.deletions.delete(try AppID.checked("com.example.app"))
                return serial
            }
        }
        #expect(refusal?.code == .appUnknown)
    }
}
