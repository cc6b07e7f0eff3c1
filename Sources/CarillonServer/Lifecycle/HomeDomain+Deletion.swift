import CarillonCore
package import CarillonWire
import Logging

extension HomeDomain {
    /// Deletes an app, forgets its remembered values, and removes the first of its rows.
    ///
    /// A fault of the removal of rows is logged and not thrown: the app is deleted, and the sweep removes the rows.
    ///
    /// - Throws: ``Refusal`` if there is no such app, or the fault of the store. After a throw, the app is not deleted.
    package func deleteApp(_ app: AppID) async throws {
        let serial = try await shared.apps.serial(of: app)
        try await deletions.delete(app)
        if let serial { await forget(serial) }
        do {
            try await deletions.begin()
        } catch {
            shared.logger.warning(
                "cannot remove rows of deleted app; the sweep retries", metadata: ["app": "\(app)", "reason": "\(error)"])
        }
    }

    private func forget(_ app: AppSerial) async {
        await shared.gateways.forget(app)
        shared.users.forget(app)
        shared.vetoes.forget(app)
        shared.documents.forget(app)
        await itemEngine.forget(app)
    }
}
