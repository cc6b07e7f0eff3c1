import CarillonCore

/// The alerts' texts of all apps, read when one is first wanted.
struct AlertTexts: Sendable {
    private let store: any GatewayStore
    private let known = KnownValues<AppSerial, AlertText?>(capacity: 1000)

    init(store: any GatewayStore) { self.store = store }

    func text(of app: AppSerial) async throws -> AlertText? {
        try await known.value(of: app) { try await store.alert(of: app).flatMap(AlertText.init(document:)) }
    }

    func forget(_ app: AppSerial) { known.forget(app) }
}
