import CarillonCore
import Synchronization

/// The alerts' texts of all apps, read when one is first wanted.
final class AlertTexts: Sendable {
    private let store: any GatewayStore
    private let known = Mutex(RecentValues<AppSerial, AlertText?>(capacity: 1000))

    init(store: any GatewayStore) { self.store = store }

    func text(of app: AppSerial) async throws -> AlertText? {
        if let known = known.withLock({ $0[app] }) { return known }
        let text = try await store.alert(of: app).flatMap(AlertText.init(document:))
        known.withLock { $0[app] = .some(text) }
        return text
    }

    func forget(_ app: AppSerial) { known.withLock { $0[app] = nil } }
}
