import CarillonCore
import Synchronization

/// The alerts' texts of all apps, read when one is first wanted.
final class AlertTexts: Sendable {
    private let store: any GatewayStore
    private struct State {
        var known = RecentValues<AppSerial, AlertText?>(capacity: 1000)
        /// How many were forgotten: what was read before one was may be what was forgotten.
        var changes = 0
    }

    private let state = Mutex(State())

    init(store: any GatewayStore) { self.store = store }

    func text(of app: AppSerial) async throws -> AlertText? {
        let (known, changes) = state.withLock { ($0.known[app], $0.changes) }
        if let known { return known }
        let text = try await store.alert(of: app).flatMap(AlertText.init(document:))
        state.withLock { state in
            if state.changes == changes { state.known[app] = .some(text) }
        }
        return text
    }

    func forget(_ app: AppSerial) {
        state.withLock { state in
            state.known[app] = nil
            state.changes += 1
        }
    }
}
